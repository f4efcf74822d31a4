//! Scratch memory of a program, which carries values from one dispatch to later ones of the same
//! node. The nodes of a program run one after another and share it.

use std::ops::Range;

use kovar_core::{DType, Dims, Layout};

use crate::kernel::Dispatch;
use crate::view::{Base, Operand};

/// Words of scratch memory, as F32; `None` if there are too many.
pub(crate) fn operand(words: Range<usize>) -> Option<Operand> {
    let dims = Dims::new(&[words.end.checked_sub(words.start)?])?;
    Some(Operand {
        dtype: DType::F32,
        layout: Layout::strided(dims, Dims::new(&[1])?, words.start)?,
        base: Base::Scratch,
        skew: 0,
    })
}

/// The scratch memory that dispatches use, in bytes.
pub(crate) fn bytes<'d>(dispatches: impl Iterator<Item = &'d Dispatch>) -> u64 {
    let operands = dispatches.flat_map(|dispatch| &dispatch.operands);
    let scratch = operands.filter(|operand| operand.base == Base::Scratch);
    scratch
        .map(|operand| operand.bytes().end)
        .max()
        .unwrap_or(0)
}
