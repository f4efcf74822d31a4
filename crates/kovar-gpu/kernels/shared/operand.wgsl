// An operand that is read element by element. build.rs makes the modules `a` to `f` of this one,
// with the operand's letter in place of its name.

import package::shared::element::{decode, word_of};

override OPERAND_DTYPE: u32 = 0u;

@group(0) @binding(OPERAND_BINDING) var<storage, read_write> operand: array<u32>;

fn operand_at(i: u32) -> f32 {
    return decode(operand[word_of(i, OPERAND_DTYPE)], i, OPERAND_DTYPE);
}
