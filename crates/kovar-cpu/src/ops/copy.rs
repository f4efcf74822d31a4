//! Copies, casts and makes contiguous.

use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef};

use super::rows::{PIECE, Walk};
use super::{Compiled, Entry, I32, WEIGHTS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

const RESULTS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::Q8_0];

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if is_integer(op) { I32 } else { WEIGHTS },
    result: |op| if is_integer(op) { I32 } else { RESULTS },
    compile,
};

fn is_integer(op: &Op) -> bool {
    matches!(op, Op::Copy(copy) if copy.dtype == DType::I32)
}

struct Copy {
    walk: Walk<2>,
    /// Bytes of an element or block, if both sides hold the same bytes without gaps.
    block: Option<(usize, usize)>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let walk = Walk::merged([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?;
    let dense = walk.forms.iter().all(|form| form.stride() == 1);
    let block = (dense && x.dtype == y.dtype).then(|| (x.dtype.block_len(), x.dtype.block_bytes()));
    Ok(Box::new(Copy { walk, block }))
}

impl Kernel for Copy {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        self.walk.pieces(run, &|[x, y], n| {
            if let Some((len, bytes)) = self.block {
                // SAFETY: pieces are whole blocks inside the operands, which do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(x, y, n / len * bytes) };
                return;
            }
            let mut buffer = [0.0; PIECE];
            // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
            // writable.
            unsafe {
                let x = x_form.read(run.vector, x, n, buffer.as_mut_ptr());
                y_form.write(run.vector, x, n, y);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "copy"
    }
}
