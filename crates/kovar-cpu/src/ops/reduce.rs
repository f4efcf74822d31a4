//! Sums and means over the last dimension.

use std::mem::MaybeUninit;

use kovar_core::NodeRef;
use kovar_core::ops::{Op, ReduceKind};

use super::rows::{PIECE, Walk, repeated, row_pieces};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if kind_of(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    compile,
};

fn kind_of(op: &Op) -> Option<ReduceKind> {
    match op {
        Op::Reduce(op) => {
            Some(op.kind).filter(|kind| matches!(kind, ReduceKind::Sum | ReduceKind::Mean))
        }
        _ => None,
    }
}

struct Reduce {
    /// `x`, and the result repeated along the rows of `x`.
    walk: Walk<2>,
    /// The divisor of a sum.
    divisor: f64,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let divisor = match kind_of(node.op()).ok_or_else(malformed)? {
        ReduceKind::Mean => x.layout.dims().from_end(0) as f64,
        _ => 1.0,
    };
    let y = repeated(&y, x.layout.dims()).ok_or_else(malformed)?;
    Ok(Box::new(Reduce {
        walk: Walk::rows([&x, &y]).ok_or_else(malformed)?,
        divisor,
        name: node.op().name(),
    }))
}

impl Kernel for Reduce {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        let row_len = self.walk.row_len();
        self.walk.each_row(run, &|_, [x, y], _| {
            let mut buffer = MaybeUninit::<[f32; PIECE]>::uninit();
            let mut sum = 0f64;
            for (column, n) in row_pieces(row_len) {
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                sum += f64::from(unsafe {
                    let from = x_form.at(x, column);
                    let x = x_form.read(run.vector, from, n, buffer.as_mut_ptr().cast());
                    (run.vector.sum)(x, n)
                });
            }
            let result = (sum / self.divisor) as f32;
            // SAFETY: the result's element is inside it, by `Kernel::run`'s contract writable.
            unsafe { y_form.write(run.vector, &result, 1, y) };
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
