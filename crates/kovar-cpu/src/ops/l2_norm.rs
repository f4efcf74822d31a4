//! Euclidean normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{PIECE, Walk};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

struct L2Norm {
    walk: Walk<2>,
    eps: f32,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let eps = match node.op() {
        Op::L2Norm(op) => op.eps,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let walk = Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(L2Norm { walk, eps }))
}

impl Kernel for L2Norm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        let (row_len, kernels) = (self.walk.row_len(), run.vector);
        self.walk.each_row(run, &|_, [x, y], _| {
            let mut buffer = [0.0; PIECE];
            let buffer = buffer.as_mut_ptr();
            let mut sum = 0.0;
            for column in (0..row_len).step_by(PIECE) {
                let n = PIECE.min(row_len - column);
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                sum += f64::from(unsafe {
                    let x = x_form.read(kernels, x_form.at(x, column), n, buffer);
                    (kernels.sum_squares)(x, n)
                });
            }
            let factor = (1.0 / sum.sqrt().max(f64::from(self.eps))) as f32;
            for column in (0..row_len).step_by(PIECE) {
                let n = PIECE.min(row_len - column);
                // SAFETY: as above, and writable; in place, a piece is read before it is written.
                unsafe {
                    let x = x_form.read(kernels, x_form.at(x, column), n, buffer);
                    let to = y_form.at(y, column);
                    let target = y_form.target(to, buffer);
                    (kernels.scale)(x, target, n, factor);
                    y_form.write(kernels, target, n, to);
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "l2_norm"
    }
}
