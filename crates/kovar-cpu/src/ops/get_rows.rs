//! Reads rows of a table by index.

use kovar_core::{DType, NodeRef};

use super::elements::move_elements;
use super::rows::{PIECE, RowForm, Walk, repeated, row_pieces};
use super::{Compiled, Entry, I32, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { &DType::ALL } else { I32 },
    result: |_| PLAIN,
    compile,
};

struct GetRows {
    table: Address,
    rows: usize,
    /// Bytes from one row of the table to the next.
    stride: usize,
    form: RowForm,
    /// Whether elements are decoded to F32; otherwise they are copied.
    decoded: bool,
    /// Each index repeated along its row, and the row of the result.
    walk: Walk<2>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (table, ids) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let walk = repeated(&ids, y.layout.dims()).and_then(|ids| Walk::rows([&ids, &y]));
    Ok(Box::new(GetRows {
        table: table.start(),
        rows: table.layout.dims().from_end(1),
        stride: table.bytes(table.layout.stride_from_end(1)),
        form: RowForm::of(&table),
        decoded: y.dtype == DType::F32,
        walk: walk.ok_or_else(|| malformed(resolver, node, "ids"))?,
    }))
}

impl GetRows {
    /// Decodes a row of the table, or writes zeros if there is none.
    ///
    /// # Safety
    /// `source` is a row of the table and `y` one of the result.
    unsafe fn decode(&self, run: &Run<'_>, source: Option<*mut u8>, y: *mut u8) {
        let [_, y_form] = self.walk.forms;
        for (column, n) in row_pieces(self.walk.row_len()) {
            let mut buffer = [0.0; PIECE];
            let to = y_form.at(y, column);
            let target = y_form.target(to, buffer.as_mut_ptr());
            // SAFETY: by this function's contract; the piece is inside both rows.
            unsafe {
                match source {
                    Some(source) => {
                        let from = self.form.at(source, column);
                        self.form.read_to(run.vector, from, n, target);
                    }
                    None => std::ptr::write_bytes(target.cast::<u8>(), 0, 4 * n),
                }
                y_form.write(run.vector, target, n, to);
            }
        }
    }
}

impl Kernel for GetRows {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [_, y_form] = self.walk.forms;
        let size = self.form.dtype().block_bytes();
        self.walk.each_row(run, &|_, [id, y], _| {
            // SAFETY: the index is inside its operand, by `Kernel::run`'s contract readable.
            let id = unsafe { id.cast::<i32>().read_unaligned() };
            let row = usize::try_from(id).ok().filter(|&row| row < self.rows);
            let source = row.map(|row| self.table.get().wrapping_add(row * self.stride));
            // SAFETY: the rows are inside the table and the result, by `Kernel::run`'s contract
            // readable and writable; no element is larger than `zeros`.
            unsafe {
                if self.decoded {
                    self.decode(run, source, y);
                    return;
                }
                let zeros = [0u8; 8];
                let from = match source {
                    Some(source) => (source.cast_const(), self.form.stride()),
                    None => (zeros.as_ptr(), 0),
                };
                move_elements(size, from, (y, y_form.stride()), self.walk.row_len());
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "get_rows"
    }
}
