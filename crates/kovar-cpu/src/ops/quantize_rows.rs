//! Quantisation of rows to symmetric 8-bit codes.

use kovar_core::NodeRef;

use super::rows::{PIECE, Walk, repeated, row_pieces};
use super::{Compiled, Entry, F32, FLOATS, I8, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| I8,
    compile,
};

struct QuantizeRows {
    /// `x`, the codes, and the scale of each row repeated along it.
    walk: Walk<3>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, scales) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let walk = repeated(&scales, x.layout.dims()).and_then(|s| Walk::rows([&x, &y, &s]));
    Ok(Box::new(QuantizeRows {
        walk: walk.ok_or_else(|| malformed(resolver, node, "scales"))?,
    }))
}

impl Kernel for QuantizeRows {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let ([x_form, y_form, _], row_len) = (self.walk.forms, self.walk.row_len());
        self.walk.each_row(run, &|_, [x, y, scale], _| {
            if row_len == 0 {
                return;
            }
            let mut buffer = [0.0; PIECE];
            let mut codes = [0i8; PIECE];
            // SAFETY: the scale is inside its operand, the pieces inside the rows, by
            // `Kernel::run`'s contract readable and writable.
            unsafe {
                let scale = scale.cast::<f32>().read_unaligned();
                for (column, n) in row_pieces(row_len) {
                    let from = x_form.at(x, column);
                    let x = x_form.read(run.vector, from, n, buffer.as_mut_ptr());
                    let to = y_form.at(y, column).cast::<i8>();
                    if y_form.stride() == 1 {
                        (run.vector.quantize_i8)(x, n, scale, to);
                        continue;
                    }
                    (run.vector.quantize_i8)(x, n, scale, codes.as_mut_ptr());
                    for (i, &code) in codes.iter().take(n).enumerate() {
                        to.add(i * y_form.stride()).write(code);
                    }
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "quantize_rows"
    }
}
