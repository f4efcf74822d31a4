// Operand `d`.

import package::shared::element::{decode, word_of};

override D_DTYPE: u32 = 0u;

@group(0) @binding(5) var<storage, read_write> d: array<u32>;

fn d_at(i: u32) -> f32 {
    return decode(d[word_of(i, D_DTYPE)], i, D_DTYPE);
}
