//! Writes rows by index.

use kovar_core::{Dims, Layout, NodeRef};

use super::elements::move_elements;
use super::rows::{GRAIN, PIECE, Walk, row_pieces};
use super::{COPIES, Compiled, Entry, I32, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { PLAIN } else { I32 },
    result: |_| COPIES,
    compile,
};

/// The indices of the rows that are written.
pub(super) struct Ids {
    start: Address,
    /// Bytes between neighbouring indices.
    stride: usize,
    n: usize,
    /// Rows of the destination.
    rows: usize,
}

struct SetRows {
    ids: Ids,
    /// Row 0 of the source and of the destination.
    walk: Walk<2>,
    /// Bytes from one row to the next, of the source and of the destination.
    strides: [usize; 2],
}

/// The first of the operand's rows, without their dimension.
pub(super) fn first_row<'a>(operand: &Operand<'a>) -> Option<Operand<'a>> {
    let layout = &operand.layout;
    let inner = Dims::new(layout.dims().get(1..)?)?;
    let strides = Dims::new(layout.strides().get(1..)?)?;
    let layout = Layout::strided(inner, strides, layout.offset())?;
    Some(operand.with_layout(layout))
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, ids) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let walk = || Walk::merged([&first_row(&x)?, &first_row(&y)?]);
    Ok(Box::new(SetRows {
        ids: Ids::new(&ids, &y),
        walk: walk().ok_or_else(|| malformed(resolver, node, "x"))?,
        strides: [row_stride(&x), row_stride(&y)],
    }))
}

/// Bytes from one row to the next.
pub(super) fn row_stride(operand: &Operand<'_>) -> usize {
    let strides = operand.layout.strides();
    operand.bytes(strides.first().copied().unwrap_or(0))
}

impl Ids {
    pub(super) fn new(ids: &Operand<'_>, destination: &Operand<'_>) -> Self {
        Self {
            start: ids.start(),
            stride: ids.bytes(ids.layout.stride_from_end(0)),
            n: ids.layout.elements(),
            rows: destination.layout.dims().first().copied().unwrap_or(0),
        }
    }

    /// For each index that is inside the destination, calls `f` with the row of the source, the row
    /// of the destination and the worker. A row has `row_elements` elements.
    ///
    /// # Safety
    /// The indices are readable.
    pub(super) unsafe fn each(
        &self,
        run: &Run<'_>,
        row_elements: usize,
        f: &(impl Fn(usize, usize, usize) + Sync),
    ) {
        let elements = self.n * row_elements;
        let n_chunks = (elements / GRAIN).clamp(1, 4 * run.pool.n_threads());
        run.pool.run(n_chunks, &|chunk, worker| {
            for i in 0..self.n {
                let id = self.start.get().wrapping_add(i * self.stride);
                // SAFETY: by this function's contract.
                let id = unsafe { id.cast::<i32>().read_unaligned() };
                let row = usize::try_from(id).ok().filter(|&row| row < self.rows);
                // A chunk owns rows of the destination, so that equal indices do not race.
                if let Some(row) = row.filter(|row| row % n_chunks == chunk) {
                    f(i, row, worker);
                }
            }
        });
    }
}

impl SetRows {
    /// Copies row `i` of the source to row `row` of the destination.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the rows exist, and no other thread writes that row meanwhile.
    unsafe fn copy_row(&self, run: &Run<'_>, i: usize, row: usize) {
        let [x_form, y_form] = self.walk.forms;
        let row_len = self.walk.row_len();
        for inner in 0..self.walk.n_rows() {
            let [x, y] = self.walk.row(inner);
            let x = x.wrapping_add(i * self.strides[0]);
            let y = y.wrapping_add(row * self.strides[1]);
            if x_form.dtype() == y_form.dtype() {
                let size = x_form.dtype().block_bytes();
                let (from, to) = ((x.cast_const(), x_form.stride()), (y, y_form.stride()));
                // SAFETY: by this function's contract.
                unsafe { move_elements(size, from, to, row_len) };
                continue;
            }
            for (column, n) in row_pieces(row_len) {
                let mut buffer = [0.0; PIECE];
                // SAFETY: by this function's contract; the piece is inside both rows.
                unsafe {
                    let from = x_form.at(x, column);
                    let from = x_form.read(run.vector, from, n, buffer.as_mut_ptr());
                    y_form.write(run.vector, from, n, y_form.at(y, column));
                }
            }
        }
    }
}

impl Kernel for SetRows {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let row_elements = self.walk.n_rows() * self.walk.row_len();
        // SAFETY: by `Kernel::run`'s contract; the rows are inside their operands, and only one
        // chunk writes a row.
        unsafe {
            self.ids
                .each(run, row_elements, &|i, row, _| self.copy_row(run, i, row));
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        "set_rows"
    }
}
