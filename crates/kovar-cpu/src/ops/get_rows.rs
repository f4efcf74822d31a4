//! Rows of a table by index.

use kovar_core::{Dims, Layout, MAX_RANK, NodeRef};

use super::rows::{PIECE, RowForm, Walk};
use super::{Compiled, Entry, F32, I32, WEIGHTS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { WEIGHTS } else { I32 },
    result: |_| F32,
    compile,
};

struct GetRows {
    table: Address,
    rows: usize,
    /// Bytes from one row of the table to the next.
    stride: usize,
    form: RowForm,
    /// Each index, repeated along the row, with the row of the result.
    walk: Walk<2>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (table, ids) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    // Each index stands for a row: a last dimension of stride 0.
    let repeated = || {
        let mut strides = [0; MAX_RANK];
        let outer = ids.layout.strides();
        strides.get_mut(..outer.rank())?.copy_from_slice(outer);
        let strides = Dims::new(strides.get(..y.layout.dims().rank())?)?;
        let layout = Layout::strided(*y.layout.dims(), strides, ids.layout.offset())?;
        Walk::rows([&ids.with_layout(layout), &y])
    };
    Ok(Box::new(GetRows {
        table: table.start(),
        rows: table.layout.dims().from_end(1),
        stride: table.bytes(table.layout.stride_from_end(1)),
        form: RowForm::of(&table),
        walk: repeated().ok_or_else(|| malformed(resolver, node, "ids"))?,
    }))
}

impl Kernel for GetRows {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [_, y_form] = self.walk.forms;
        let row_len = self.walk.row_len();
        self.walk.each_row(run, &|_, [id, y], _| {
            // SAFETY: the index is inside its operand, by `Kernel::run`'s contract readable.
            let id = unsafe { id.cast::<i32>().read_unaligned() };
            let row = usize::try_from(id).ok().filter(|&row| row < self.rows);
            let source = row.map(|row| self.table.get().wrapping_add(row * self.stride));
            let mut column = 0;
            while column < row_len {
                let n = PIECE.min(row_len - column);
                let mut buffer = [0.0; PIECE];
                let to = y_form.at(y, column);
                let target = y_form.target(to, buffer.as_mut_ptr());
                // SAFETY: the row is inside the table, the piece inside both rows, by
                // `Kernel::run`'s contract readable and writable.
                unsafe {
                    match source {
                        Some(source) => {
                            self.form
                                .read_to(run.vector, self.form.at(source, column), n, target);
                        }
                        None => std::ptr::write_bytes(target.cast::<u8>(), 0, 4 * n),
                    }
                    y_form.write(run.vector, target, n, to);
                }
                column += n;
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "get_rows"
    }
}
