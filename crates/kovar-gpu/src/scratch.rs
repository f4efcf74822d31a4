//! Memory of a program for what its dispatches hand on to those after them.
//!
//! Planning needs no GPU, so a dispatch names such memory by an operand of [`operand`], which
//! [`place`] gives a buffer. The nodes of a program run one after another and share it.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use kovar_core::{DType, Dims, Layout};

use crate::kernel::Dispatch;
use crate::seam::{Buffer, BufferUse, Device, SeamError};
use crate::view::Operand;

/// Stands for the buffer that a program is given.
#[derive(Debug)]
struct Scratch;

impl Buffer for Scratch {
    fn len(&self) -> u64 {
        0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Words of scratch memory, as F32; `None` if they are too many.
pub(crate) fn operand(words: Range<usize>) -> Option<Operand> {
    let dims = Dims::new(&[words.end.checked_sub(words.start)?])?;
    Some(Operand {
        dtype: DType::F32,
        layout: Layout::strided(dims, Dims::new(&[1])?, words.start)?,
        buffer: Arc::new(Scratch),
        storage: 0,
    })
}

/// Gives scratch operands a buffer of `device`, and returns its size in bytes.
pub(crate) fn place<'d>(
    device: &dyn Device,
    dispatches: impl Iterator<Item = &'d mut Dispatch>,
) -> Result<usize, SeamError> {
    let operands = dispatches.flat_map(|dispatch| &mut dispatch.operands);
    let mut scratch: Vec<&mut Operand> = operands
        .filter(|operand| operand.buffer.as_any().is::<Scratch>())
        .collect();
    let bytes = scratch.iter().map(|operand| operand.bytes().end).max();
    let Some(bytes) = bytes else {
        return Ok(0);
    };
    let buffer = device.create_buffer(bytes, BufferUse::Storage)?;
    for operand in &mut scratch {
        operand.buffer = buffer.clone();
    }
    Ok(bytes as usize)
}
