//! Products with an 8-bit weight that has a scale for each row.
//!
//! For a few rows of activations the weight is read once, each row multiplied with all of them:
//! codes in integers, floats in f32. For more, both become f32, where codes and their products
//! are exact, and are multiplied a panel at a time.

use std::ops::Range;

use kovar_core::{DType, NodeRef};

use super::blocked::{Blocked, COLUMNS, Cut, Left, Size, TERMS, multiply};
use super::elements::move_elements;
use super::rows::{GRAIN, RowForm, Walk, repeated, row_starts};
use super::{Compiled, Entry, F32, I8, malformed};
use crate::buffer::ALIGN;
use crate::pool::SharedMut;
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};
use crate::vector::MAX_DOT;

const ACTIVATIONS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I8];

/// Up to this many rows of activations each weight is multiplied as it is read.
const FEW_ROWS: usize = 8;

/// Rows of the weight that are transposed together.
const TRANSPOSED: usize = 8;

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
    scales: (Address, RowForm),
    /// The first elements of the rows of `x` and of the result, and the scales of the rows of
    /// `x`, or anything for float activations.
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
    let x_scales = (node.n_inputs() > 3)
        .then(|| resolver.input(node, 3))
        .transpose()?;
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
        terms: w.layout.dims().from_end(0),
    };
    Some(MatmulI8 {
        w: w.start(),
        w_row: w.bytes(w.layout.stride_from_end(1)),
        w_form: RowForm::of(w),
        scales: (scales.start(), RowForm::of(scales)),
        rows,
        x_form: RowForm::of(x),
        y_form: RowForm::of(y),
        size,
        n_threads,
        cut: Cut::new(1, size, n_threads),
    })
}

/// Parts of the scratch memory, in bytes.
struct Scratch {
    /// `x` without gaps, as codes or as f32.
    x: usize,
    /// The scales of the rows of `x`.
    x_scales: usize,
    /// What a worker or all of them take.
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
        self.size.terms.next_multiple_of(ALIGN)
    }

    fn scratch(&self) -> Scratch {
        let bytes = if self.integers() { 1 } else { size_of::<f32>() };
        let x = self.size.rows.saturating_mul(self.size.terms);
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

    /// Brings `x` and its scales into the scratch memory.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn copy_x(&self, run: &Run<'_>) {
        let k = self.size.terms;
        let grain = GRAIN.div_ceil(k.max(1));
        let scratch = SharedMut::new(run.scratch.get());
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
    /// As [`Kernel::run`], `x` having been copied.
    unsafe fn multiply_few(&self, run: &Run<'_>) {
        let (m, k) = (self.size.rows, self.size.terms);
        let scratch = self.scratch();
        let base = SharedMut::new(run.scratch.get());
        let grain = GRAIN.div_ceil(k.saturating_mul(m).max(1));
        run.pool
            .run_ranges(self.size.columns, grain, &|columns, worker| {
                for column in columns {
                    let row = self.w.get().wrapping_add(column * self.w_row);
                    // SAFETY: by this function's contract; each worker has a row of its own, and
                    // chunks do not share columns.
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
                        let scale = self.scale(run, column);
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
    /// `w` has `k` codes, and `x` is the copy of all activations.
    unsafe fn dot(&self, run: &Run<'_>, w: *const i8, x: *const u8, token: usize) -> f32 {
        let k = self.size.terms;
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

    /// # Safety
    /// As [`Kernel::run`]; the row is inside the weight.
    unsafe fn scale(&self, run: &Run<'_>, row: usize) -> f32 {
        let (start, form) = self.scales;
        let mut scale = 0.0;
        // SAFETY: by this function's contract.
        unsafe { form.read_to(run.vector, form.at(start.get(), row), 1, &mut scale) };
        scale
    }
}

impl Blocked for MatmulI8 {
    fn products(&self) -> usize {
        1
    }

    fn size(&self, _product: usize) -> Size {
        self.size
    }

    unsafe fn start(&self, _run: &Run<'_>, _product: usize, _row: usize) -> f32 {
        0.0
    }

    unsafe fn left(
        &self,
        run: &Run<'_>,
        _product: usize,
        rows: Range<usize>,
        terms: Range<usize>,
        _buffer: *mut f32,
    ) -> Left {
        let at = rows.start * self.size.terms + terms.start;
        Left {
            start: run.scratch.get().cast::<f32>().wrapping_add(at),
            row: self.size.terms,
            term: 1,
        }
    }

    unsafe fn right(
        &self,
        run: &Run<'_>,
        _product: usize,
        terms: Range<usize>,
        columns: Range<usize>,
        panel: *mut f32,
    ) {
        let mut buffer = [0.0; TRANSPOSED * TERMS];
        for first in (0..columns.len()).step_by(TRANSPOSED) {
            let n = TRANSPOSED.min(columns.len() - first);
            for (i, row) in buffer.chunks_exact_mut(TERMS).take(n).enumerate() {
                let start = (columns.start + first + i) * self.w_row;
                let start = self.w.get().wrapping_add(start);
                let from = self.w_form.at(start, terms.start);
                // SAFETY: the terms are inside the weight, and at most `TERMS`.
                unsafe {
                    let to = row.as_mut_ptr();
                    self.w_form.read_to(run.vector, from, terms.len(), to);
                }
            }
            // SAFETY: the buffer has the rows, and the panel room for the columns.
            unsafe {
                let to = panel.add(first);
                (run.vector.transpose)(buffer.as_ptr(), TERMS, n, terms.len(), to, COLUMNS);
            }
        }
    }

    unsafe fn store(
        &self,
        run: &Run<'_>,
        _product: usize,
        row: usize,
        columns: Range<usize>,
        sums: *mut f32,
    ) {
        let n = columns.len();
        let (scales, form) = self.scales;
        let mut buffer = [0.0; COLUMNS];
        let [_, y, _] = self.rows.row(row);
        // SAFETY: the columns are inside the scales, the result and the sums.
        unsafe {
            let from = form.at(scales.get(), columns.start);
            form.read_to(run.vector, from, n, buffer.as_mut_ptr());
            let x_scales = run.scratch.get().add(self.scratch().x).cast::<f32>();
            let x_scale = *x_scales.add(row);
            let results = std::slice::from_raw_parts_mut(sums, n);
            for (result, scale) in results.iter_mut().zip(&buffer) {
                *result *= scale * x_scale;
            }
            let to = self.y_form.at(y, columns.start);
            self.y_form.write(run.vector, sums, n, to);
        }
    }
}

impl Kernel for MatmulI8 {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let scratch = self.scratch();
        // SAFETY: by this function's contract; the parts lie one behind the other in the scratch
        // memory.
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
