//! The scales of rows for quantisation to 8 bits: the largest magnitude / 127.

use kovar_core::NodeRef;

use super::rows::{PIECE, Walk, repeated, row_pieces};
use super::{Compiled, Entry, F32, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| F32,
    compile,
};

struct RowScales {
    /// `x`, and the scale of each row repeated along it.
    walk: Walk<2>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let walk = repeated(&y, x.layout.dims()).and_then(|y| Walk::rows([&x, &y]));
    Ok(Box::new(RowScales {
        walk: walk.ok_or_else(|| malformed(resolver, node, "x"))?,
    }))
}

impl Kernel for RowScales {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let form = self.walk.forms[0];
        self.walk.each_row(run, &|_, [x, y], _| {
            let mut buffer = [0.0; PIECE];
            let mut largest = 0f32;
            for (column, n) in row_pieces(self.walk.row_len()) {
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                let here = unsafe {
                    let x = form.read(run.vector, form.at(x, column), n, buffer.as_mut_ptr());
                    (run.vector.largest)(x, n)
                };
                // A NaN stays.
                if !largest.is_nan() && (here > largest || here.is_nan()) {
                    largest = here;
                }
            }
            // SAFETY: the scale is inside the result.
            unsafe { y.cast::<f32>().write_unaligned(largest / 127.0) };
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "row_scales"
    }
}
