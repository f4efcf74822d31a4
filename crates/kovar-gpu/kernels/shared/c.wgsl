// Operand `c`.

import package::shared::element::{decode, word_of};

override C_DTYPE: u32 = 0u;

@group(0) @binding(4) var<storage, read_write> c: array<u32>;

fn c_at(i: u32) -> f32 {
    return decode(c[word_of(i, C_DTYPE)], i, C_DTYPE);
}
