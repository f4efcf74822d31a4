//! The index of the greatest element.

use std::mem::MaybeUninit;

use kovar_core::NodeRef;

use super::rows::{PIECE, Walk, repeated, row_pieces};
use super::{Compiled, Entry, FLOATS, I32, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| I32,
    compile,
};

/// `x`, and the result repeated along the rows of `x`.
struct Argmax(Walk<2>);

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let y = repeated(&y, x.layout.dims()).ok_or_else(malformed)?;
    let walk = Walk::rows([&x, &y]).ok_or_else(malformed)?;
    Ok(Box::new(Argmax(walk)))
}

impl Kernel for Argmax {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, _] = self.0.forms;
        let row_len = self.0.row_len();
        self.0.each_row(run, &|_, [x, y], _| {
            let mut buffer = MaybeUninit::<[f32; PIECE]>::uninit();
            // The greatest element so far and its index.
            let mut best: Option<(f32, usize)> = None;
            for (column, n) in row_pieces(row_len) {
                if best.is_some_and(|(greatest, _)| greatest.is_nan()) {
                    break;
                }
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                let (greatest, values) = unsafe {
                    let from = x_form.at(x, column);
                    let x = x_form.read(run.vector, from, n, buffer.as_mut_ptr().cast());
                    let greatest = (run.vector.greatest)(x, n);
                    (greatest, std::slice::from_raw_parts(x, n))
                };
                let nan = greatest.is_nan();
                if nan || best.is_none_or(|(so_far, _)| greatest > so_far) {
                    let is_it = |x: &f32| *x == greatest || (nan && x.is_nan());
                    let at = values.iter().position(is_it).unwrap_or(0);
                    best = Some((greatest, column + at));
                }
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
