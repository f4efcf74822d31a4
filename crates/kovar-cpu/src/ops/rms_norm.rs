//! Root mean square normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{PIECE, RowForm, Walk};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

struct RmsNorm {
    walk: Walk<2>,
    weight: Option<(Address, RowForm)>,
    eps: f32,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let eps = match node.op() {
        Op::RmsNorm(op) => op.eps,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let weight = (node.n_inputs() > 1)
        .then(|| resolver.input(node, 1))
        .transpose()?;
    Ok(Box::new(RmsNorm {
        walk: Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?,
        weight: weight.map(|weight| (weight.start(), RowForm::of(&weight))),
        eps,
    }))
}

impl Kernel for RmsNorm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        let (row_len, kernels) = (self.walk.row_len(), run.vector);
        let pieces = |f: &mut dyn FnMut(usize, usize)| {
            let mut column = 0;
            while column < row_len {
                let n = PIECE.min(row_len - column);
                f(column, n);
                column += n;
            }
        };
        self.walk.each_row(run, &|_, [x, y], _| {
            let mut buffers = [[0.0; PIECE]; 2];
            let [buffer, weight_buffer] = &mut buffers;
            let mut sum = 0.0;
            pieces(&mut |column, n| {
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                sum += unsafe {
                    let x = x_form.read(kernels, x_form.at(x, column), n, buffer.as_mut_ptr());
                    (kernels.sum_squares)(x, n)
                };
            });
            let factor = 1.0 / (sum / row_len as f32 + self.eps).sqrt();
            pieces(&mut |column, n| {
                // SAFETY: the piece is inside the rows and the weight, by `Kernel::run`'s contract
                // readable and writable; in place, a piece is read before it is written.
                unsafe {
                    let x = x_form.read(kernels, x_form.at(x, column), n, buffer.as_mut_ptr());
                    let to = y_form.at(y, column);
                    let target = y_form.target(to, buffer.as_mut_ptr());
                    match self.weight {
                        Some((weight, form)) => {
                            let weight = form.at(weight.get(), column);
                            let weight = form.read(kernels, weight, n, weight_buffer.as_mut_ptr());
                            (kernels.scale_mul)(x, weight, target, n, factor);
                        }
                        None => (kernels.scale)(x, target, n, factor),
                    }
                    y_form.write(kernels, target, n, to);
                }
            });
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "rms_norm"
    }
}
