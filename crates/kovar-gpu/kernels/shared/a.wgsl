// Operand `a`.

import package::shared::element::{decode, word_of};

override A_DTYPE: u32 = 0u;

@group(0) @binding(2) var<storage, read_write> a: array<u32>;

fn a_at(i: u32) -> f32 {
    return decode(a[word_of(i, A_DTYPE)], i, A_DTYPE);
}
