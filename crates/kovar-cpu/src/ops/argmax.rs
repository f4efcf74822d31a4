//! The index of the greatest element.

use kovar_core::NodeRef;

use super::argsort::sort_key;
use super::rows::{PIECE, Walk, repeated};
use super::{Compiled, Entry, FLOATS, I32, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| I32,
    compile,
};

/// `x` and the result, the latter repeated along the rows of `x`.
struct Argmax(Walk<2>);

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let y = repeated(&y, x.layout.dims()).ok_or_else(malformed)?;
    let walk = Walk::rows([&x, &y]).ok_or_else(malformed)?;
    Ok(Box::new(Argmax(walk)))
}

/// The greatest key and the first index that has it.
fn greatest(values: &[f32]) -> (u32, usize) {
    // Two passes, because the first one alone becomes vector instructions.
    let greatest = values.iter().map(|&x| sort_key(x)).fold(0, u32::max);
    let first = values.iter().position(|&x| sort_key(x) == greatest);
    (greatest, first.unwrap_or(0))
}

impl Kernel for Argmax {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, _] = self.0.forms;
        let row_len = self.0.row_len();
        self.0.each_row(run, &|_, [x, y], _| {
            let mut buffer = [0f32; PIECE];
            let mut best = None;
            let mut column = 0;
            while column < row_len {
                let n = PIECE.min(row_len - column);
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                let values = unsafe {
                    let from = x_form.at(x, column);
                    let x = x_form.read(run.vector, from, n, buffer.as_mut_ptr());
                    std::slice::from_raw_parts(x, n)
                };
                let (key, at) = greatest(values);
                if best.is_none_or(|(greatest, _)| key > greatest) {
                    best = Some((key, column + at));
                }
                column += n;
            }
            let index = best.map_or(0, |(_, at)| at as i32);
            // SAFETY: the result's element is inside it, by `Kernel::run`'s contract writable.
            unsafe { y.cast::<i32>().write_unaligned(index) };
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "argmax"
    }
}
