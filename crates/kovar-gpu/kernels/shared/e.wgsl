// Operand `e`.

import package::shared::element::{decode, word_of};

override E_DTYPE: u32 = 0u;

@group(0) @binding(6) var<storage, read_write> e: array<u32>;

fn e_at(i: u32) -> f32 {
    return decode(e[word_of(i, E_DTYPE)], i, E_DTYPE);
}
