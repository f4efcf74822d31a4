//! Layer normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::moments::Moments;
use super::rows::{PIECE, RowForm, Walk};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

type Factor = Option<(Address, RowForm)>;

struct LayerNorm {
    walk: Walk<2>,
    /// Rows, one after the other, that the factors go along.
    factor_rows: usize,
    weight: Factor,
    bias: Factor,
    eps: f32,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let eps = match node.op() {
        Op::LayerNorm(op) => op.eps,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    compile_rows(resolver, node, [&x, &y], 1, eps)
}

/// A norm of the rows of `x` and `y`. The weight and the bias of `node`, its operands 1 and 2, are those
/// of `factor_rows` rows in turn.
pub(super) fn compile_rows(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    operands: [&Operand<'_>; 2],
    factor_rows: usize,
    eps: f32,
) -> Compiled {
    let factor = |i| {
        let factor = (node.n_inputs() > i).then(|| resolver.input(node, i));
        let factor = factor.transpose()?;
        Ok(factor.map(|factor| (factor.start(), RowForm::of(&factor))))
    };
    Ok(Box::new(LayerNorm {
        walk: Walk::rows(operands).ok_or_else(|| malformed(resolver, node, "x"))?,
        factor_rows,
        weight: factor(1)?,
        bias: factor(2)?,
        eps,
        name: node.op().name(),
    }))
}

/// Calls `f` with the first column and the length of each piece of a row.
fn pieces(row_len: usize, f: &mut dyn FnMut(usize, usize)) {
    let mut column = 0;
    while column < row_len {
        let n = PIECE.min(row_len - column);
        f(column, n);
        column += n;
    }
}

impl Kernel for LayerNorm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        let (row_len, kernels) = (self.walk.row_len(), run.vector);
        self.walk.each_row(run, &|row, [x, y], _| {
            let first = row % self.factor_rows * row_len;
            let mut buffers = [[0.0; PIECE]; 2];
            let [buffer, factors] = &mut buffers;
            // Sums over the pieces of `x`.
            let mut total = |of: &dyn Fn(*const f32, usize) -> (f32, f32)| {
                let mut sums = (0.0, 0.0);
                pieces(row_len, &mut |column, n| {
                    let at = x_form.at(x, column);
                    // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                    let x = unsafe { x_form.read(kernels, at, n, buffer.as_mut_ptr()) };
                    let (first, second) = of(x, n);
                    sums.0 += f64::from(first);
                    sums.1 += f64::from(second);
                });
                sums
            };
            // SAFETY: `total` gives pieces that are readable.
            let (sum, _) = total(&|x, n| unsafe { ((kernels.sum)(x, n), 0.0) });
            let moments = Moments::of(row_len, sum, |center| {
                // SAFETY: as above.
                total(&|x, n| unsafe { (kernels.row_deviations)(x, n, center) })
            });
            let (center, factor, shift) = moments.center_scale(moments.factor(self.eps), 0.0);
            pieces(row_len, &mut |column, n| {
                // SAFETY: the piece is inside the rows and the factors, by `Kernel::run`'s
                // contract readable and writable; in place, a piece is read before it is written.
                unsafe {
                    let x = x_form.read(kernels, x_form.at(x, column), n, buffer.as_mut_ptr());
                    let to = y_form.at(y, column);
                    let target = y_form.target(to, buffer.as_mut_ptr());
                    (kernels.center_scale)(x, target, n, center, factor, shift);
                    if let Some((weight, form)) = self.weight {
                        let weight = form.at(weight.get(), first + column);
                        let weight = form.read(kernels, weight, n, factors.as_mut_ptr());
                        (kernels.mul)(target, weight, target, n);
                    }
                    if let Some((bias, form)) = self.bias {
                        let bias = form.at(bias.get(), first + column);
                        let bias = form.read(kernels, bias, n, factors.as_mut_ptr());
                        (kernels.add)(target, bias, target, n);
                    }
                    y_form.write(kernels, target, n, to);
                }
            });
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
