//! Products with the weights of chosen experts.
//!
//! The rows of activations are sorted by expert. The rows of one expert are gathered, multiplied
//! with its weights as in [`matmul`](super::matmul), and scattered to their rows of the result.

use kovar_core::NodeRef;

use super::matmul::WeightRows;
use super::matrix::Matrix;
use super::rows::{GRAIN, IndexedRows};
use super::{Compiled, Entry, F32, FLOATS, I32, WEIGHTS, malformed};
use crate::buffer::ALIGN;
use crate::pool::ChunkPtr;
use crate::product::{FloatMatrix, ProductError, Rows};
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

struct MatmulId {
    w: WeightRows,
    /// Bytes from the weights of one expert to those of the next.
    expert_stride: usize,
    /// By token and slot.
    x: IndexedRows<2>,
    /// Whether all experts of a token take the same row of `x`.
    one_x: bool,
    /// The start of the ids, and bytes between neighbours along both dims.
    ids: (Address, [usize; 2]),
    /// By token and slot.
    y: IndexedRows<2>,
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
    let w_strides = w.layout.strides().get(..2)?;
    Some(MatmulId {
        w: WeightRows::new(w, Matrix::new(w, w_strides)),
        expert_stride: w.bytes(w_strides[0]),
        x: IndexedRows::new(x)?,
        one_x: x.layout.dims().from_end(1) == 1,
        ids: (
            ids.start(),
            [strides[0], strides[1]].map(|elements| ids.bytes(elements)),
        ),
        y: IndexedRows::new(y)?,
        experts: w.layout.dims().from_end(2),
        n: w.layout.dims().from_end(1),
        k: w.layout.dims().from_end(0),
        dims: [dims[0], dims[1]],
        n_threads,
    })
}

/// Sizes of the regions of the scratch memory, in bytes, in their order.
struct Scratch {
    /// The end of the rows of each expert in `order`, u32.
    ends: usize,
    /// The rows sorted by expert, u32.
    order: usize,
    /// The rows of an expert in f32 without gaps.
    x: usize,
    /// Their results.
    y: usize,
    /// Decoded rows of a weight.
    decoded: usize,
    /// Scratch memory of the products.
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
            decoded: words(self.w.decoded_len(), 1),
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

    /// Sorts the rows by expert, stably, and writes zeros to the results of rows without one.
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
            // The start; the loop below moves it to the end, row by row.
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
        let to = self.y.row([row / self.dims[1], row % self.dims[1]]);
        for first in (0..self.n).step_by(ZEROS.len()) {
            let n = ZEROS.len().min(self.n - first);
            // SAFETY: the columns are inside the result.
            unsafe {
                let to = self.y.form.at(to, first);
                self.y.form.write(run.vector, ZEROS.as_ptr(), n, to);
            }
        }
    }
}

impl Kernel for MatmulId {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let (n, k, used) = (self.n, self.k, self.dims[1]);
        let scratch = self.scratch();
        // SAFETY: by this function's contract and `scratch_bytes`, which sums the same regions;
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
                let (x_rows, y_rows) = (ChunkPtr::new(x), ChunkPtr::new(y));
                let grain = |width: usize| GRAIN.div_ceil(width.max(1));
                run.pool.run_ranges(rows.len(), grain(k), &|range, _| {
                    for i in range {
                        let row = rows[i] as usize;
                        let slot = if self.one_x { 0 } else { row % used };
                        let from = self.x.row([row / used, slot]);
                        let to = x_rows.get().add(i * k);
                        self.x.form.read_to(run.vector, from, k, to);
                    }
                });
                let offset = expert * self.expert_stride;
                let rows_of_x = Rows::from_raw_parts(x, rows.len(), k, k);
                self.w
                    .multiply(run, offset, rows_of_x, (y, n), decoded, product)?;
                run.pool.run_ranges(rows.len(), grain(n), &|range, _| {
                    for i in range {
                        let row = rows[i] as usize;
                        let to = self.y.row([row / used, row % used]);
                        let from = y_rows.get().add(i * n);
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
