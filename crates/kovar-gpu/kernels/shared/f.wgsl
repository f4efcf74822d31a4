// Operand `f`.

import package::shared::element::{decode, word_of};

override F_DTYPE: u32 = 0u;

@group(0) @binding(7) var<storage, read_write> f: array<u32>;

fn f_at(i: u32) -> f32 {
    return decode(f[word_of(i, F_DTYPE)], i, F_DTYPE);
}
