//! Repetition of a tensor along its dimensions.

use kovar_core::{Dims, NodeRef};

use super::elements::move_elements;
use super::rows::{RowForm, Walk};
use super::{Compiled, Entry, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    compile,
};

struct Repeat {
    x: Address,
    /// The sizes of `x`, and of the result along the same dimensions.
    sizes: (Dims, Dims),
    /// Bytes between neighbours along each dimension of `x`.
    strides: Vec<usize>,
    form: RowForm,
    /// The result's rows.
    walk: Walk<1>,
    /// Bytes of an element.
    size: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    // A result of rank 0 is a row of one element.
    let walk = match y.layout.dims().rank() {
        0 => Walk::merged([&y]),
        _ => Walk::rows([&y]),
    };
    let strides = x.layout.strides().iter();
    Ok(Box::new(Repeat {
        x: x.start(),
        sizes: (*x.layout.dims(), *y.layout.dims()),
        strides: strides.map(|&stride| x.bytes(stride)).collect(),
        form: RowForm::of(&x),
        walk: walk.ok_or_else(|| malformed(resolver, node, "x"))?,
        size: x.dtype.block_bytes(),
    }))
}

impl Repeat {
    /// The row of `x` that a row of the result is a repetition of.
    fn source(&self, mut row: usize) -> *const u8 {
        let (own, whole) = &self.sizes;
        let mut at = self.x.get();
        let dims = own.iter().zip(whole.iter()).zip(&self.strides);
        for ((&own, &whole), &stride) in dims.rev().skip(1) {
            at = at.wrapping_add(row % whole % own * stride);
            row /= whole;
        }
        at
    }
}

impl Kernel for Repeat {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let n = self.sizes.0.from_end(0);
        let [y_form] = self.walk.forms;
        let (from_stride, to_stride) = (self.form.stride(), y_form.stride());
        self.walk.each_row(run, &|row, [y], _| {
            let from = self.source(row);
            let mut column = 0;
            while column < self.walk.row_len() {
                // A single element fills the row; otherwise the row of `x` is copied repeatedly.
                let (stride, len) = match n {
                    1 => (0, self.walk.row_len()),
                    _ => (from_stride, n),
                };
                let to = y_form.at(y, column);
                // SAFETY: the row of `x` and the window of the result's row are inside the
                // operands, which are apart, by `Kernel::run`'s contract readable and writable.
                unsafe { move_elements(self.size, (from, stride), (to, to_stride), len) };
                column += len;
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "repeat"
    }
}
