//! Products with an 8-bit weight that has a scale for each row.
//!
//! For a few rows of activations the weight is read once, and each of its rows is multiplied with
//! all of them: codes in integers, floats in f32. For more rows, both operands are converted to
//! f32, in which codes and their products are exact, and multiplied a panel at a time.

use kovar_core::{DType, NodeRef};

use super::blocked::{Block, Blocked, COLUMNS, Cut, Left, Size, multiply, pack_k_major};
use super::elements::move_elements;
use super::rows::{GRAIN, RowForm, Vector, Walk, repeated, row_starts};
use super::{Compiled, Entry, F32, I8, malformed, optional};
use crate::buffer::ALIGN;
use crate::pool::ChunkPtr;
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};
use crate::vector::MAX_DOT;

const ACTIVATIONS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I8];

/// Up to this many rows of activations each weight is multiplied as it is read.
const FEW_ROWS: usize = 8;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| match i {
        0 => I8,
        2 => ACTIVATIONS,
        _ => F32,
    },
    result: |_| F32,
    compile,
};

struct MatmulI8 {
    w: Address,
    /// Bytes from one row of the weight to the next.
    w_row: usize,
    w_form: RowForm,
    scales: Vector,
    /// The first elements of the rows of `x` and of the result, and the scales of the rows of
    /// `x`; float activations have `x` again in place of scales.
    rows: Walk<3>,
    x_form: RowForm,
    y_form: RowForm,
    size: Size,
    n_threads: usize,
    cut: Cut,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (w, scales) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let (x, y) = (resolver.input(node, 2)?, resolver.write(node)?);
    let x_scales = optional(resolver, node, 3)?;
    let n_threads = resolver.shared.pool.n_threads();
    let kernel = assemble([&w, &scales, &x, &y], x_scales.as_ref(), n_threads);
    let kernel = kernel.ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(kernel))
}

fn assemble(
    [w, scales, x, y]: [&Operand<'_>; 4],
    x_scales: Option<&Operand<'_>>,
    n_threads: usize,
) -> Option<MatmulI8> {
    let (x_rows, y_rows) = (row_starts(x)?, row_starts(y)?);
    let x_scales = match x_scales {
        Some(x_scales) => repeated(x_scales, x_rows.layout.dims())?,
        None => x_rows,
    };
    let rows = Walk::rows([&x_rows, &y_rows, &x_scales])?;
    let size = Size {
        rows: rows.n_rows(),
        columns: w.layout.dims().from_end(1),
        k: w.layout.dims().from_end(0),
    };
    Some(MatmulI8 {
        w: w.start(),
        w_row: w.bytes(w.layout.stride_from_end(1)),
        w_form: RowForm::of(w),
        scales: Vector::of(scales),
        rows,
        x_form: RowForm::of(x),
        y_form: RowForm::of(y),
        size,
        n_threads,
        cut: Cut::new(1, size, n_threads),
    })
}

/// Sizes of the regions of the scratch memory, in bytes, in their order.
struct Scratch {
    /// `x` without gaps, as codes or as f32.
    x: usize,
    /// The scales of the rows of `x`.
    x_scales: usize,
    /// Rows of the weight without gaps, one for each worker, or what [`multiply`] takes.
    product: usize,
}

impl MatmulI8 {
    fn few(&self) -> bool {
        self.size.rows <= FEW_ROWS
    }

    fn has_codes(&self) -> bool {
        self.x_form.dtype() == DType::I8
    }

    /// Whether `x` is multiplied in integers.
    fn integers(&self) -> bool {
        self.few() && self.has_codes()
    }

    /// Bytes of a row of the weight without gaps.
    fn row_bytes(&self) -> usize {
        self.size.k.next_multiple_of(ALIGN)
    }

    fn scratch(&self) -> Scratch {
        let bytes = if self.integers() { 1 } else { size_of::<f32>() };
        let x = self.size.rows.saturating_mul(self.size.k);
        Scratch {
            x: x.saturating_mul(bytes).next_multiple_of(ALIGN),
            x_scales: (self.size.rows * size_of::<f32>()).next_multiple_of(ALIGN),
            product: if self.few() {
                self.n_threads.saturating_mul(self.row_bytes())
            } else {
                Cut::scratch_bytes(self.n_threads)
            },
        }
    }

    /// Copies `x` and its scales to the scratch memory.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn copy_x(&self, run: &Run<'_>) {
        let k = self.size.k;
        let grain = GRAIN.div_ceil(k.max(1));
        let scratch = ChunkPtr::new(run.scratch.get());
        let x_bytes = self.scratch().x;
        run.pool.run_ranges(self.size.rows, grain, &|rows, _| {
            for row in rows {
                let [x, _, x_scale] = self.rows.row(row);
                // SAFETY: by this function's contract; rows do not overlap in the scratch memory.
                unsafe {
                    let base = scratch.get();
                    if self.integers() {
                        let from = (x.cast_const(), self.x_form.stride());
                        move_elements(1, from, (base.add(row * k), 1), k);
                    } else {
                        let to = base.cast::<f32>().add(row * k);
                        self.x_form.read_to(run.vector, x, k, to);
                    }
                    let scale = if self.has_codes() {
                        x_scale.cast::<f32>().read_unaligned()
                    } else {
                        1.0
                    };
                    *base.add(x_bytes).cast::<f32>().add(row) = scale;
                }
            }
        });
    }

    /// # Safety
    /// As [`Kernel::run`], after [`copy_x`](Self::copy_x).
    unsafe fn multiply_few(&self, run: &Run<'_>) {
        let (m, k) = (self.size.rows, self.size.k);
        let scratch = self.scratch();
        let base = ChunkPtr::new(run.scratch.get());
        let grain = GRAIN.div_ceil(k.saturating_mul(m).max(1));
        run.pool
            .run_ranges(self.size.columns, grain, &|columns, worker| {
                for column in columns {
                    let row = self.w.get().wrapping_add(column * self.w_row);
                    // SAFETY: by this function's contract; each worker has its own row, and chunks
                    // do not share columns.
                    unsafe {
                        let base = base.get();
                        let x_scales = base.add(scratch.x).cast::<f32>();
                        let w = if self.w_form.stride() == 1 {
                            row.cast_const()
                        } else {
                            let rows = base.add(scratch.x + scratch.x_scales);
                            let buffer = rows.add(worker * self.row_bytes());
                            let from = (row.cast_const(), self.w_form.stride());
                            move_elements(1, from, (buffer, 1), k);
                            buffer.cast_const()
                        };
                        let scale = self.scales.element(run.vector, column);
                        for token in 0..m {
                            let sum = self.dot(run, w.cast(), base, token);
                            let [_, y, _] = self.rows.row(token);
                            let y = self.y_form.at(y, column).cast::<f32>();
                            y.write_unaligned(sum * scale * *x_scales.add(token));
                        }
                    }
                }
            });
    }

    /// The product of a row of the weight without gaps with a row of `x`.
    ///
    /// # Safety
    /// `w` is readable for `k` codes, and `x` is the copy of all activations.
    unsafe fn dot(&self, run: &Run<'_>, w: *const i8, x: *const u8, token: usize) -> f32 {
        let k = self.size.k;
        // SAFETY: by this function's contract.
        unsafe {
            if !self.integers() {
                return (run.vector.dot_i8_f32)(w, x.cast::<f32>().add(token * k), k);
            }
            let x = x.cast::<i8>().add(token * k);
            let sums = (0..k).step_by(MAX_DOT).map(|first| {
                let n = MAX_DOT.min(k - first);
                i64::from((run.vector.dot_i8)(w.add(first), x.add(first), n))
            });
            sums.sum::<i64>() as f32
        }
    }
}

impl Blocked for MatmulI8 {
    fn products(&self) -> usize {
        1
    }

    fn size(&self, _product: usize) -> Size {
        self.size
    }

    unsafe fn left(&self, run: &Run<'_>, block: &Block, _buffer: *mut f32) -> Left {
        let at = block.rows.start * self.size.k + block.k.start;
        Left {
            start: run.scratch.get().cast::<f32>().wrapping_add(at),
            row_stride: self.size.k,
            k_stride: 1,
        }
    }

    unsafe fn right(&self, run: &Run<'_>, block: &Block, panel: *mut f32) {
        let (k, columns) = (&block.k, &block.columns);
        let at = |column: usize| {
            let row = self
                .w
                .get()
                .wrapping_add((columns.start + column) * self.w_row);
            self.w_form.at(row, k.start)
        };
        // SAFETY: the block is inside the weight and the panel has room for it.
        unsafe { pack_k_major(run, self.w_form, (k.len(), columns.len()), at, panel) };
    }

    unsafe fn store(&self, run: &Run<'_>, block: &Block, row: usize, sums: *mut f32) {
        let (first, n) = (block.columns.start, block.columns.len());
        let mut buffer = [0.0; COLUMNS];
        let [_, y, _] = self.rows.row(row);
        // SAFETY: the columns are inside the scales, the result and the sums.
        unsafe {
            let scales = self.scales.read(run.vector, first, n, buffer.as_mut_ptr());
            let scales = std::slice::from_raw_parts(scales, n);
            let x_scales = run.scratch.get().add(self.scratch().x).cast::<f32>();
            let x_scale = *x_scales.add(row);
            let results = std::slice::from_raw_parts_mut(sums, n);
            for (result, scale) in results.iter_mut().zip(scales) {
                *result *= scale * x_scale;
            }
            let to = self.y_form.at(y, first);
            self.y_form.write(run.vector, sums, n, to);
        }
    }
}

impl Kernel for MatmulI8 {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let scratch = self.scratch();
        // SAFETY: by this function's contract; the regions follow each other in the scratch memory.
        unsafe {
            self.copy_x(run);
            if self.few() {
                self.multiply_few(run);
            } else {
                let blocks = run.scratch.get().add(scratch.x + scratch.x_scales);
                multiply(self, run, &self.cut, blocks);
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let scratch = self.scratch();
        scratch.x + scratch.x_scales + scratch.product
    }

    fn name(&self) -> &'static str {
        "matmul_i8"
    }
}
