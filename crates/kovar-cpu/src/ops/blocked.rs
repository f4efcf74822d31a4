//! Products of matrices that are made a panel at a time: the right operand is packed into f32
//! panels that stay in a cache, so it may be a view, a rounded dtype or the patches of an image.
//!
//! Work is cut into units of some rows and some columns of a product. A unit goes through the
//! terms in blocks: it packs a panel of the right operand, multiplies it with blocks of rows of
//! the left one and adds to its sums, which it brings to the result at the end.

use std::ops::Range;

use crate::buffer::ALIGN;
use crate::pool::SharedMut;
use crate::program::Run;
use crate::vector::{Beta, Tile};

/// Columns of a panel: two, four or eight of the widest cells of every level.
pub(super) const COLUMNS: usize = 96;

/// Terms of a panel: a cell's columns of it stay in an L1 cache.
pub(super) const TERMS: usize = 192;

/// The most rows of a unit: its sums and a panel stay in an L2 cache.
const ROWS: usize = 256;

/// Rows of a block of the left operand.
const LEFT_ROWS: usize = 64;

/// Rows are cut in multiples of the tallest cell.
const CELL_ROWS: usize = 8;

/// The widest vectors; columns are padded to them.
const LANES: usize = 16;

/// The least multiplications worth a chunk of their own.
const GRAIN: usize = 1 << 17;

const SUMS: usize = ROWS * COLUMNS;
const PANEL: usize = TERMS * COLUMNS;
const LEFT: usize = LEFT_ROWS * TERMS;

/// Bytes of a worker's sums, panel and block of the left operand.
const WORKER_BYTES: usize = (SUMS + PANEL + LEFT) * size_of::<f32>();

const _: () = assert!(WORKER_BYTES.is_multiple_of(ALIGN));

/// The sizes of one product.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) terms: usize,
}

/// Where a block of the left operand lies as f32, of any alignment.
pub(super) struct Left {
    pub(super) start: *const f32,
    /// Elements from one row to the next.
    pub(super) row: usize,
    /// Elements from one term to the next.
    pub(super) term: usize,
}

/// Products `sums[i, j] = start[i] + sum_l left[i, l] * right[l, j]`.
pub(super) trait Blocked: Sync {
    /// The number of products.
    fn products(&self) -> usize;

    /// The sizes of a product; none has more rows or columns than product 0.
    fn size(&self, product: usize) -> Size;

    /// What the sums of a row start from.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    unsafe fn start(&self, run: &Run<'_>, product: usize, row: usize) -> f32;

    /// Some rows and terms of the left operand, in place or in `buffer`, which has room for them.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the rows and terms are inside the product.
    unsafe fn left(
        &self,
        run: &Run<'_>,
        product: usize,
        rows: Range<usize>,
        terms: Range<usize>,
        buffer: *mut f32,
    ) -> Left;

    /// Writes some terms and columns of the right operand to `panel`, terms [`COLUMNS`] apart.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the terms and columns are inside the
    /// product and the panel has room for them.
    unsafe fn right(
        &self,
        run: &Run<'_>,
        product: usize,
        terms: Range<usize>,
        columns: Range<usize>,
        panel: *mut f32,
    );

    /// Brings the sums of some columns of a row to the result; the sums may be overwritten.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the row and columns are inside the product.
    unsafe fn store(
        &self,
        run: &Run<'_>,
        product: usize,
        row: usize,
        columns: Range<usize>,
        sums: *mut f32,
    );
}

/// How products are cut into units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    products: usize,
    /// Rows of a unit.
    rows: usize,
    row_blocks: usize,
    column_blocks: usize,
    grain: usize,
}

impl Cut {
    /// Units for all threads, with as many rows as that leaves, because a panel is packed anew
    /// for each.
    pub(super) fn new(products: usize, size: Size, n_threads: usize) -> Self {
        const UNITS_PER_THREAD: usize = 4;
        let column_blocks = size.columns.div_ceil(COLUMNS);
        let units = products.saturating_mul(column_blocks).max(1);
        let wanted = n_threads
            .saturating_mul(UNITS_PER_THREAD)
            .div_ceil(units)
            .min(size.rows.div_ceil(4 * CELL_ROWS))
            .max(size.rows.div_ceil(ROWS))
            .max(1);
        let rows = size.rows.div_ceil(wanted).next_multiple_of(CELL_ROWS);
        let rows = rows.clamp(CELL_ROWS, ROWS);
        let work = rows
            .min(size.rows)
            .saturating_mul(COLUMNS.min(size.columns))
            .saturating_mul(size.terms.max(1));
        Self {
            products,
            rows,
            row_blocks: size.rows.div_ceil(rows),
            column_blocks,
            grain: (GRAIN / work.max(1)).max(1),
        }
    }

    /// Bytes of scratch memory that [`multiply`] takes.
    pub(super) fn scratch_bytes(n_threads: usize) -> usize {
        n_threads.saturating_mul(WORKER_BYTES)
    }
}

/// Computes all products.
///
/// # Safety
/// As [`Kernel::run`](crate::program::Kernel::run); `scratch` has [`Cut::scratch_bytes`] bytes for
/// the pool's threads, aligned to 64, and `cut` is of the operation.
pub(super) unsafe fn multiply(
    operation: &impl Blocked,
    run: &Run<'_>,
    cut: &Cut,
    scratch: *mut u8,
) {
    let scratch = SharedMut::new(scratch);
    let blocks = cut.row_blocks * cut.column_blocks;
    run.pool
        .run_ranges(cut.products * blocks, cut.grain, &|units, worker| {
            // SAFETY: each worker has its own part of the scratch memory.
            let scratch = unsafe { scratch.get().add(worker * WORKER_BYTES).cast::<f32>() };
            for unit in units {
                let (product, block) = (unit / blocks, unit % blocks);
                let size = operation.size(product);
                let row = block / cut.column_blocks * cut.rows;
                let column = block % cut.column_blocks * COLUMNS;
                let rows = row..size.rows.min(row + cut.rows);
                let columns = column..size.columns.min(column + COLUMNS);
                if rows.is_empty() || columns.is_empty() {
                    continue;
                }
                // SAFETY: by this function's contract; units differ in their product, rows or
                // columns.
                unsafe { multiply_unit(operation, run, product, rows, columns, scratch) };
            }
        });
}

/// # Safety
/// As [`multiply`]; `scratch` is of one worker, and the rows and columns are inside the product.
unsafe fn multiply_unit(
    operation: &impl Blocked,
    run: &Run<'_>,
    product: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    scratch: *mut f32,
) {
    let terms = operation.size(product).terms;
    let n = columns.len().next_multiple_of(LANES);
    // SAFETY: the parts lie one behind the other in the scratch memory; blocks are inside the
    // product and no larger than the parts.
    unsafe {
        let sums = scratch;
        let panel = sums.add(SUMS);
        let buffer = panel.add(PANEL);
        for (i, row) in rows.clone().enumerate() {
            let start = operation.start(run, product, row);
            std::slice::from_raw_parts_mut(sums.add(i * COLUMNS), n).fill(start);
        }
        for first in (0..terms).step_by(TERMS) {
            let block = first..terms.min(first + TERMS);
            operation.right(run, product, block.clone(), columns.clone(), panel);
            if n > columns.len() {
                for term in 0..block.len() {
                    let behind = panel.add(term * COLUMNS + columns.len());
                    std::ptr::write_bytes(behind, 0, n - columns.len());
                }
            }
            for row in rows.clone().step_by(LEFT_ROWS) {
                let some = row..rows.end.min(row + LEFT_ROWS);
                let left = operation.left(run, product, some.clone(), block.clone(), buffer);
                (run.vector.product)(&Tile {
                    m: some.len(),
                    n,
                    k: block.len(),
                    a: left.start,
                    a_row: left.row,
                    a_column: left.term,
                    b: panel,
                    b_row: COLUMNS,
                    c: sums.add((row - rows.start) * COLUMNS),
                    c_row: COLUMNS,
                    beta: Beta::One,
                });
            }
        }
        for (i, row) in rows.enumerate() {
            let sums = sums.add(i * COLUMNS);
            operation.store(run, product, row, columns.clone(), sums);
        }
    }
}
