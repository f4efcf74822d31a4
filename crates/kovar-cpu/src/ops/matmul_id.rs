//! Products with the weights of chosen experts.
//!
//! The rows of activations are sorted by expert; those of one expert are brought together,
//! multiplied with its weights as [`matmul`](super::matmul) multiplies, and brought to the places
//! of the result.

use kovar_core::NodeRef;

use super::matmul::{DECODED_ROWS, decode_rows};
use super::matrix::Matrix;
use super::rows::{GRAIN, RowForm};
use super::{Compiled, Entry, F32, FLOATS, I32, WEIGHTS, malformed};
use crate::buffer::ALIGN;
use crate::pool::SharedMut;
use crate::product::{FloatDType, FloatMatrix, ProductError, Rows, RowsMut};
use crate::program::{Address, Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| match i {
        0 => WEIGHTS,
        1 => FLOATS,
        _ => I32,
    },
    result: |_| F32,
    compile,
};

/// An operand of three dims, by its rows.
struct Cube {
    start: Address,
    /// Bytes between neighbours along the first two dims.
    strides: [usize; 2],
    form: RowForm,
}

impl Cube {
    fn new(operand: &Operand<'_>) -> Option<Self> {
        let strides = operand.layout.strides().get(..2)?;
        Some(Self {
            start: operand.start(),
            strides: [strides[0], strides[1]].map(|elements| operand.bytes(elements)),
            form: RowForm::of(operand),
        })
    }

    fn row(&self, i: usize, j: usize) -> *mut u8 {
        let offset = i * self.strides[0] + j * self.strides[1];
        self.start.get().wrapping_add(offset)
    }
}

struct MatmulId {
    w: Cube,
    /// The dtype of weights that are multiplied as they lie; others are decoded.
    float: Option<FloatDType>,
    x: Cube,
    /// Whether the experts of a token have one row of `x`.
    shared: bool,
    /// The start of the ids, and bytes between neighbours along both dims.
    ids: (Address, [usize; 2]),
    y: Cube,
    experts: usize,
    n: usize,
    k: usize,
    /// `[tokens, used]`
    dims: [usize; 2],
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (w, x) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let (ids, y) = (resolver.input(node, 2)?, resolver.write(node)?);
    let n_threads = resolver.shared.pool.n_threads();
    let kernel = assemble([&w, &x, &ids, &y], n_threads);
    let kernel = kernel.ok_or_else(|| malformed(resolver, node, "w"))?;
    Ok(Box::new(kernel))
}

fn assemble([w, x, ids, y]: [&Operand<'_>; 4], n_threads: usize) -> Option<MatmulId> {
    let strides = ids.layout.strides().get(..2)?;
    let dims = ids.layout.dims().get(..2)?;
    // Rows are counted in 32 bits.
    u32::try_from(ids.layout.elements()).ok()?;
    let w_cube = Cube::new(w)?;
    let float = FloatDType::try_from(w.dtype).ok();
    Some(MatmulId {
        float: float.filter(|_| w_cube.form.stride() == 1),
        w: w_cube,
        x: Cube::new(x)?,
        shared: x.layout.dims().from_end(1) == 1,
        ids: (
            ids.start(),
            [strides[0], strides[1]].map(|elements| ids.bytes(elements)),
        ),
        y: Cube::new(y)?,
        experts: w.layout.dims().from_end(2),
        n: w.layout.dims().from_end(1),
        k: w.layout.dims().from_end(0),
        dims: [dims[0], dims[1]],
        n_threads,
    })
}

/// Parts of the scratch memory, in bytes.
struct Scratch {
    /// Where the rows of each expert end in `order`, u32.
    ends: usize,
    /// The rows sorted by expert, u32.
    order: usize,
    /// The rows of an expert in f32 without gaps.
    x: usize,
    /// Their results.
    y: usize,
    /// Decoded rows of a weight.
    decoded: usize,
    /// What the products take.
    product: usize,
}

impl Scratch {
    fn total(&self) -> usize {
        let sizes = [self.order, self.x, self.y, self.decoded, self.product];
        sizes
            .iter()
            .fold(self.ends, |sum, &n| sum.saturating_add(n))
    }
}

impl MatmulId {
    fn rows(&self) -> usize {
        self.dims[0] * self.dims[1]
    }

    fn scratch(&self) -> Scratch {
        let words = |a: usize, b: usize| {
            let bytes = a.saturating_mul(b).saturating_mul(size_of::<f32>());
            bytes.next_multiple_of(ALIGN)
        };
        let rows = self.rows();
        let product = FloatMatrix::scratch_bytes(self.n_threads, rows);
        Scratch {
            ends: words(self.experts, 1),
            order: words(rows, 1),
            x: words(rows, self.k),
            y: words(rows, self.n),
            decoded: match self.float {
                Some(_) => 0,
                None => words(DECODED_ROWS, self.k),
            },
            product: product.next_multiple_of(ALIGN),
        }
    }

    /// The expert of a row, if there is one.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn expert(&self, row: usize) -> Option<usize> {
        let (start, [tokens, slots]) = self.ids;
        let (token, slot) = (row / self.dims[1], row % self.dims[1]);
        let id = start.get().wrapping_add(token * tokens + slot * slots);
        // SAFETY: the id is inside its operand, by `Kernel::run`'s contract readable.
        let id = unsafe { id.cast::<i32>().read_unaligned() };
        usize::try_from(id).ok().filter(|&id| id < self.experts)
    }

    /// Sorts the rows by expert, in their order, and clears the results of those without one.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn sort(&self, run: &Run<'_>, ends: &mut [u32], order: &mut [u32]) {
        ends.fill(0);
        for row in 0..self.rows() {
            // SAFETY: by this function's contract.
            match unsafe { self.expert(row) } {
                Some(expert) => ends[expert] += 1,
                // SAFETY: as above.
                None => unsafe { self.clear(run, row) },
            }
        }
        let mut sum = 0;
        for end in ends.iter_mut() {
            // The start, which moves to the end as rows are put down.
            let count = std::mem::replace(end, sum);
            sum += count;
        }
        for row in 0..self.rows() {
            // SAFETY: by this function's contract.
            if let Some(expert) = unsafe { self.expert(row) } {
                order[ends[expert] as usize] = row as u32;
                ends[expert] += 1;
            }
        }
    }

    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn clear(&self, run: &Run<'_>, row: usize) {
        const ZEROS: [f32; 64] = [0.0; 64];
        let to = self.y.row(row / self.dims[1], row % self.dims[1]);
        for first in (0..self.n).step_by(ZEROS.len()) {
            let n = ZEROS.len().min(self.n - first);
            // SAFETY: the columns are inside the result.
            unsafe {
                let to = self.y.form.at(to, first);
                self.y.form.write(run.vector, ZEROS.as_ptr(), n, to);
            }
        }
    }

    /// Multiplies rows without gaps with the weights of an expert.
    ///
    /// # Safety
    /// As [`Kernel::run`]; `x` and `y` have `m` rows, `decoded` has room for the rows decoded at
    /// a time.
    unsafe fn multiply(
        &self,
        run: &Run<'_>,
        expert: usize,
        m: usize,
        [x, y, decoded]: [*mut f32; 3],
        scratch: &mut [u8],
    ) -> Result<(), ProductError> {
        let (n, k) = (self.n, self.k);
        let start = self.w.row(expert, 0);
        // SAFETY: by this function's contract; the weights are inside their operand.
        unsafe {
            let x = Rows::from_raw_parts(x, m, k, k);
            if let Some(dtype) = self.float {
                let stride = self.w.strides[1] / dtype.bytes();
                let elements = n.checked_sub(1).map_or(0, |last| last * stride + k);
                let data = std::slice::from_raw_parts(start, elements * dtype.bytes());
                let w = FloatMatrix::new(data, dtype, n, k, stride)?;
                let y = RowsMut::from_raw_parts(y, m, n, n);
                return w.multiply(run.product, run.pool, x, y, scratch);
            }
            let matrix = Matrix::of_rows(self.w.start, self.w.form, self.w.strides[1]);
            for row in (0..n).step_by(DECODED_ROWS) {
                let rows = DECODED_ROWS.min(n - row);
                let from = start.wrapping_add(row * self.w.strides[1]);
                decode_rows(run, &matrix, from, rows, k, decoded);
                let bytes = rows * k * size_of::<f32>();
                let data = std::slice::from_raw_parts(decoded.cast::<u8>(), bytes);
                let w = FloatMatrix::new(data, FloatDType::F32, rows, k, k)?;
                let y = RowsMut::from_raw_parts(y.add(row), m, rows, n);
                w.multiply(run.product, run.pool, x, y, scratch)?;
            }
        }
        Ok(())
    }
}

impl Kernel for MatmulId {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let (n, k, used) = (self.n, self.k, self.dims[1]);
        let scratch = self.scratch();
        // SAFETY: by this function's contract and `scratch_bytes`, which adds up the same parts;
        // rows of the result do not overlap.
        unsafe {
            let ends = run.scratch.get();
            let order = ends.add(scratch.ends);
            let x = order.add(scratch.order);
            let y = x.add(scratch.x);
            let decoded = y.add(scratch.y);
            let product = decoded.add(scratch.decoded);
            let product = std::slice::from_raw_parts_mut(product, scratch.product);
            let ends = std::slice::from_raw_parts_mut(ends.cast::<u32>(), self.experts);
            let order = std::slice::from_raw_parts_mut(order.cast::<u32>(), self.rows());
            self.sort(run, ends, order);
            let [x, y, decoded] = [x, y, decoded].map(<*mut u8>::cast::<f32>);
            let mut first = 0;
            for (expert, &end) in ends.iter().enumerate() {
                let rows = &order[first..end as usize];
                first = end as usize;
                if rows.is_empty() {
                    continue;
                }
                let (x_shared, y_shared) = (SharedMut::new(x), SharedMut::new(y));
                let grain = |width: usize| GRAIN.div_ceil(width.max(1));
                run.pool.run_ranges(rows.len(), grain(k), &|range, _| {
                    for i in range {
                        let row = rows[i] as usize;
                        let slot = if self.shared { 0 } else { row % used };
                        let from = self.x.row(row / used, slot);
                        let to = x_shared.get().add(i * k);
                        self.x.form.read_to(run.vector, from, k, to);
                    }
                });
                self.multiply(run, expert, rows.len(), [x, y, decoded], product)?;
                run.pool.run_ranges(rows.len(), grain(n), &|range, _| {
                    for i in range {
                        let row = rows[i] as usize;
                        let to = self.y.row(row / used, row % used);
                        let from = y_shared.get().add(i * n);
                        self.y.form.write(run.vector, from, n, to);
                    }
                });
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch().total()
    }

    fn name(&self) -> &'static str {
        "matmul_id"
    }
}
