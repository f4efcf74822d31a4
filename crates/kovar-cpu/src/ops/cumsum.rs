//! Prefix sums along the last dimension.

use std::mem::MaybeUninit;

use kovar_core::NodeRef;

use super::rows::{PIECE, Walk, row_pieces};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

struct Cumsum(Walk<2>);

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let walk = Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(Cumsum(walk)))
}

impl Kernel for Cumsum {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.0.forms;
        let row_len = self.0.row_len();
        self.0.each_row(run, &|_, [x, y], _| {
            let mut buffer = MaybeUninit::<[f32; PIECE]>::uninit();
            let buffer = buffer.as_mut_ptr().cast::<f32>();
            // In f64, because the rounding errors of early sums are in all later sums.
            let mut sum = 0f64;
            for (column, n) in row_pieces(row_len) {
                let to = y_form.at(y, column);
                // SAFETY: the piece is inside the rows, by `Kernel::run`'s contract readable and
                // writable; in place, it is read before it is written.
                unsafe {
                    let from = x_form.at(x, column);
                    x_form.read_to(run.vector, from, n, buffer);
                    for element in std::slice::from_raw_parts_mut(buffer, n) {
                        sum += f64::from(*element);
                        *element = sum as f32;
                    }
                    y_form.write(run.vector, buffer, n, to);
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "cumsum"
    }
}
