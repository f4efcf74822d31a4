//! The shift of a sequence by one token.

use kovar_core::ops::Op;
use kovar_core::{NodeRef, ScalarId};

use super::rows::{PIECE, RowForm, Walk, row_pieces};
use super::{Compiled, Entry, F32, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 1 { F32 } else { FLOATS },
    result: |_| FLOATS,
    compile,
};

struct TokenShift {
    walk: Walk<2>,
    state: (Address, RowForm),
    n_valid: Option<ScalarId>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let n_valid = match node.op() {
        Op::TokenShift(op) => op.n_valid,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let state = resolver.update(node)?;
    Ok(Box::new(TokenShift {
        walk: Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?,
        state: (state.start(), RowForm::of(&state)),
        n_valid,
    }))
}

/// A row's first element and its form.
type Row = (*mut u8, RowForm);

impl TokenShift {
    /// Copies a row, or writes zeros if there is none.
    ///
    /// # Safety
    /// The rows are of the walk's length, readable and writable, and apart.
    unsafe fn copy_row(&self, run: &Run<'_>, from: Option<Row>, (to, to_form): Row) {
        let kernels = run.vector;
        let mut buffer = [0.0; PIECE];
        for (column, n) in row_pieces(self.walk.row_len()) {
            // SAFETY: by this function's contract; the piece is inside both rows.
            unsafe {
                let piece = match from {
                    Some((row, form)) => {
                        form.read(kernels, form.at(row, column), n, buffer.as_mut_ptr())
                    }
                    None => buffer.as_ptr(),
                };
                to_form.write(kernels, piece, n, to_form.at(to, column));
            }
        }
    }
}

impl Kernel for TokenShift {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let valid = run.valid(self.n_valid, self.walk.n_rows());
        let [x_form, y_form] = self.walk.forms;
        let (start, form) = self.state;
        self.walk.each_row(run, &|token, [_, y], _| {
            let from = if token >= valid {
                None
            } else if token == 0 {
                Some((start.get(), form))
            } else {
                let [before, _] = self.walk.row(token - 1);
                Some((before, x_form))
            };
            // SAFETY: rows are inside the operands, by `Kernel::run`'s contract readable and
            // writable; no two chunks have the same result.
            unsafe { self.copy_row(run, from, (y, y_form)) };
        });
        // After the rows, because the first result is the state as it was.
        if let Some(last) = valid.checked_sub(1) {
            let [x, _] = self.walk.row(last);
            // SAFETY: as above, and no thread reads the state any more.
            unsafe { self.copy_row(run, Some((x, x_form)), (start.get(), form)) };
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        "token_shift"
    }
}
