// Operand `b`.

import package::shared::element::{decode, word_of};

override B_DTYPE: u32 = 0u;

@group(0) @binding(3) var<storage, read_write> b: array<u32>;

fn b_at(i: u32) -> f32 {
    return decode(b[word_of(i, B_DTYPE)], i, B_DTYPE);
}
