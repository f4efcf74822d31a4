//! Matrix products `[m, k] x [k, n]`, computed a panel at a time. The right operand is packed into
//! f32 panels that stay in a cache, so it may be a view, a rounded dtype or the patches of an
//! image.
//!
//! Work is cut into units of some rows and some columns of a product. A unit goes through `k` in
//! blocks: it packs a panel of the right operand, multiplies blocks of rows of the left operand
//! with it and accumulates sums. It stores the sums to the result at the end.

use std::ops::Range;

use super::rows::RowForm;
use crate::buffer::ALIGN;
use crate::pool::ChunkPtr;
use crate::program::Run;
use crate::vector::{Beta, Tile};

/// Columns of a panel: two, four or eight of the widest cells of every level.
pub(super) const COLUMNS: usize = 96;

/// Rows of a panel, along `k`: a cell's columns of it stay in an L1 cache.
const PANEL_K: usize = 192;

/// Columns of a K-major right operand that are transposed together.
const TRANSPOSED: usize = 8;

/// The most rows of a unit: its sums and a panel stay in an L2 cache.
const ROWS: usize = 256;

/// Rows of a block of the left operand.
const LEFT_ROWS: usize = 64;

/// Units have a multiple of this many rows: those of the tallest cell.
const CELL_ROWS: usize = 8;

/// Lanes of the widest vectors; columns are padded to a multiple of them.
const LANES: usize = 16;

/// The least multiplications of a chunk.
const GRAIN: usize = 1 << 17;

const SUMS: usize = ROWS * COLUMNS;
const PANEL: usize = PANEL_K * COLUMNS;
const LEFT: usize = LEFT_ROWS * PANEL_K;

/// Bytes of a worker's sums, panel and block of the left operand.
const WORKER_BYTES: usize = (SUMS + PANEL + LEFT) * size_of::<f32>();

const _: () = assert!(WORKER_BYTES.is_multiple_of(ALIGN));

/// The sizes of one product.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) k: usize,
}

/// A block of one product.
pub(super) struct Block {
    pub(super) product: usize,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
    pub(super) k: Range<usize>,
}

/// A block of the left operand as f32, of any alignment.
pub(super) struct Left {
    pub(super) start: *const f32,
    /// Elements from one row to the next.
    pub(super) row_stride: usize,
    /// Elements between neighbours along `k`.
    pub(super) k_stride: usize,
}

impl Left {
    /// Copies a block of the left operand to `buffer` without gaps; `row_at` gives the address of
    /// the first element of each row of the block.
    ///
    /// # Safety
    /// The rows are readable for `k` elements and `buffer` has room for them.
    pub(super) unsafe fn copied(
        run: &Run<'_>,
        form: RowForm,
        (rows, k): (usize, usize),
        row_at: impl Fn(usize) -> *mut u8,
        buffer: *mut f32,
    ) -> Self {
        for row in 0..rows {
            // SAFETY: by this function's contract.
            unsafe { form.read_to(run.vector, row_at(row), k, buffer.add(row * k)) };
        }
        Self {
            start: buffer,
            row_stride: k,
            k_stride: 1,
        }
    }
}

/// Packs `n` columns, `k` elements each, of a K-major right operand; `column_at` gives the address
/// of the first element of each column.
///
/// # Safety
/// The columns are readable for `k` elements, at most [`PANEL_K`], and `panel` has room for them.
pub(super) unsafe fn pack_k_major(
    run: &Run<'_>,
    form: RowForm,
    (k, n): (usize, usize),
    column_at: impl Fn(usize) -> *mut u8,
    panel: *mut f32,
) {
    let mut buffer = [0.0; TRANSPOSED * PANEL_K];
    for first in (0..n).step_by(TRANSPOSED) {
        let n = TRANSPOSED.min(n - first);
        for (i, column) in buffer.chunks_exact_mut(PANEL_K).take(n).enumerate() {
            let from = column_at(first + i);
            // SAFETY: by this function's contract.
            unsafe { form.read_to(run.vector, from, k, column.as_mut_ptr()) };
        }
        // SAFETY: the buffer has the columns, and the panel has room for them.
        unsafe {
            let to = panel.add(first);
            (run.vector.transpose)(buffer.as_ptr(), PANEL_K, n, k, to, COLUMNS);
        }
    }
}

/// Products `sums[i, j] = start[i] + sum_l left[i, l] * right[l, j]`.
pub(super) trait Blocked: Sync {
    /// The number of products.
    fn products(&self) -> usize;

    /// The sizes of a product; none has more rows or columns than product 0.
    fn size(&self, product: usize) -> Size;

    /// The value that the sums of a row start from.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    unsafe fn start(&self, _run: &Run<'_>, _product: usize, _row: usize) -> f32 {
        0.0
    }

    /// The block's rows of the left operand, in place or in `buffer`, which has room for them.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the block is inside the product.
    unsafe fn left(&self, run: &Run<'_>, block: &Block, buffer: *mut f32) -> Left;

    /// Writes the block's columns of the right operand to `panel`, whose rows are [`COLUMNS`]
    /// elements apart.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the block is inside the product and the
    /// panel has room for it.
    unsafe fn right(&self, run: &Run<'_>, block: &Block, panel: *mut f32);

    /// Writes the sums of a row's columns of the block to the result; the sums may be overwritten.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the row and the block are inside the
    /// product.
    unsafe fn store(&self, run: &Run<'_>, block: &Block, row: usize, sums: *mut f32);
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
    /// Enough units for all threads, each with as many rows as possible: every unit packs its own
    /// panels.
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
            .saturating_mul(size.k.max(1));
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
    let scratch = ChunkPtr::new(scratch);
    let blocks = cut.row_blocks * cut.column_blocks;
    run.pool
        .run_ranges(cut.products * blocks, cut.grain, &|units, worker| {
            // SAFETY: each worker has its own region of the scratch memory.
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
                let unit = Block {
                    product,
                    rows,
                    columns,
                    k: 0..size.k,
                };
                // SAFETY: by this function's contract; units differ in their product, rows or
                // columns.
                unsafe { multiply_unit(operation, run, unit, scratch) };
            }
        });
}

/// # Safety
/// As [`multiply`]; `scratch` is of one worker, and the unit is inside its product.
unsafe fn multiply_unit(
    operation: &impl Blocked,
    run: &Run<'_>,
    mut block: Block,
    scratch: *mut f32,
) {
    let (rows, k) = (block.rows.clone(), block.k.end);
    let columns = block.columns.len();
    let n = columns.next_multiple_of(LANES);
    // SAFETY: sums, panel and buffer follow each other in the scratch memory; blocks are inside the
    // product and fit them.
    unsafe {
        let sums = scratch;
        let panel = sums.add(SUMS);
        let buffer = panel.add(PANEL);
        for (i, row) in rows.clone().enumerate() {
            let start = operation.start(run, block.product, row);
            std::slice::from_raw_parts_mut(sums.add(i * COLUMNS), n).fill(start);
        }
        for first in (0..k).step_by(PANEL_K) {
            block.k = first..k.min(first + PANEL_K);
            operation.right(run, &block, panel);
            if n > columns {
                for row in 0..block.k.len() {
                    let padding = panel.add(row * COLUMNS + columns);
                    std::ptr::write_bytes(padding, 0, n - columns);
                }
            }
            for row in rows.clone().step_by(LEFT_ROWS) {
                block.rows = row..rows.end.min(row + LEFT_ROWS);
                let left = operation.left(run, &block, buffer);
                (run.vector.product)(&Tile {
                    m: block.rows.len(),
                    n,
                    k: block.k.len(),
                    a: left.start,
                    a_row: left.row_stride,
                    a_column: left.k_stride,
                    b: panel,
                    b_row: COLUMNS,
                    c: sums.add((row - rows.start) * COLUMNS),
                    c_row: COLUMNS,
                    beta: Beta::One,
                });
            }
        }
        for (i, row) in rows.enumerate() {
            operation.store(run, &block, row, sums.add(i * COLUMNS));
        }
    }
}
