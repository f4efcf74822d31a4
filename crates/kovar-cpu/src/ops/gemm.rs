//! General products of matrices.

use kovar_core::ops::Op;
use kovar_core::{DType, Dims, MAX_RANK, NodeRef};

use super::blocked::{Block, Blocked, COLUMNS, Cut, Left, Size, multiply, pack_k_major};
use super::matrix::{Batches, Matrix};
use super::rows::broadcast;
use super::{Compiled, Entry, F32, FACTORS, FLOATS, malformed, optional};
use crate::product::ProductError;
use crate::program::{Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i < 2 { FACTORS } else { FLOATS },
    result: |_| F32,
    compile,
};

struct Gemm {
    a: Matrix,
    /// Transposed if it is K-major: neighbours along `k` are closer together than those of a row.
    b: Matrix,
    b_is_k_major: bool,
    c: Option<Matrix>,
    y: Matrix,
    alpha: f32,
    beta: f32,
    size: Size,
    batches: Batches,
    n_threads: usize,
    cut: Cut,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (a, b) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let c = optional(resolver, node, 2)?;
    let y = resolver.write(node)?;
    let n_threads = resolver.shared.pool.n_threads();
    let kernel = assemble(node, [&a, &b, &y], c.as_ref(), n_threads);
    let kernel = kernel.ok_or_else(|| malformed(resolver, node, "a"))?;
    Ok(Box::new(kernel))
}

/// The operand with its last two dims swapped.
fn transpose<'a>(operand: &Operand<'a>) -> Option<Operand<'a>> {
    let rank = operand.layout.dims().rank();
    let mut order = [0, 1, 2, 3, 4, 5];
    order
        .get_mut(..rank)?
        .swap(rank.checked_sub(2)?, rank.checked_sub(1)?);
    Some(operand.with_layout(operand.layout.permute(order.get(..rank)?)?))
}

/// The operand with its batches repeated to those of the result.
fn repeat<'a>(operand: &Operand<'a>, result: &Dims) -> Option<Operand<'a>> {
    let outer = result.rank().checked_sub(2)?;
    let own = operand.layout.dims();
    let mut dims = [0; MAX_RANK];
    dims.get_mut(..outer)?.copy_from_slice(result.get(..outer)?);
    *dims.get_mut(outer)? = own.from_end(1);
    *dims.get_mut(outer + 1)? = own.from_end(0);
    broadcast(operand, &Dims::new(dims.get(..outer + 2)?)?)
}

fn assemble(
    node: NodeRef<'_>,
    [a, b, y]: [&Operand<'_>; 3],
    c: Option<&Operand<'_>>,
    n_threads: usize,
) -> Option<Gemm> {
    let Op::Gemm(op) = node.op() else {
        return None;
    };
    let dims = y.layout.dims();
    let a = if op.transpose_a { transpose(a)? } else { *a };
    let b = if op.transpose_b { transpose(b)? } else { *b };
    let k = a.layout.dims().from_end(0);
    let b_is_k_major = b.layout.stride_from_end(1) < b.layout.stride_from_end(0);
    let b = if b_is_k_major { transpose(&b)? } else { b };
    let outer = dims.get(..dims.rank().checked_sub(2)?)?;
    let batches = Batches::new(outer)?;
    let size = Size {
        rows: dims.from_end(1),
        columns: dims.from_end(0),
        k,
    };
    let c = c.filter(|_| op.beta != 0.0);
    Some(Gemm {
        a: matrix(&repeat(&a, dims)?)?,
        b: matrix(&repeat(&b, dims)?)?,
        b_is_k_major,
        c: match c {
            Some(c) => Some(matrix(&broadcast(c, dims)?)?),
            None => None,
        },
        y: matrix(y)?,
        alpha: op.alpha,
        beta: op.beta,
        size,
        n_threads,
        cut: Cut::new(batches.count(), size, n_threads),
        batches,
    })
}

/// The operand by its last two dims.
fn matrix(operand: &Operand<'_>) -> Option<Matrix> {
    let strides = operand.layout.strides();
    Some(Matrix::new(operand, strides.split_last()?.1))
}

impl Blocked for Gemm {
    fn products(&self) -> usize {
        self.batches.count()
    }

    fn size(&self, _product: usize) -> Size {
        self.size
    }

    unsafe fn left(&self, run: &Run<'_>, block: &Block, buffer: *mut f32) -> Left {
        let batch = self.batches.batch(block.product);
        let start = self.a.at(&batch, block.rows.start, block.k.start);
        if self.a.form.dtype() == DType::F32 {
            return Left {
                start: start.cast(),
                row_stride: self.a.row / size_of::<f32>(),
                k_stride: self.a.form.stride(),
            };
        }
        let size = (block.rows.len(), block.k.len());
        let at = |row: usize| start.wrapping_add(row * self.a.row);
        // SAFETY: the block is inside `a` and the buffer has room for it.
        unsafe { Left::copied(run, self.a.form, size, at, buffer) }
    }

    unsafe fn right(&self, run: &Run<'_>, block: &Block, panel: *mut f32) {
        let batch = self.batches.batch(block.product);
        let (k, columns) = (block.k.len(), block.columns.len());
        let (row, column) = if self.b_is_k_major {
            (block.columns.start, block.k.start)
        } else {
            (block.k.start, block.columns.start)
        };
        let start = self.b.at(&batch, row, column);
        let at = |row: usize| start.wrapping_add(row * self.b.row);
        if self.b_is_k_major {
            // SAFETY: the block is inside `b` and the panel has room for it.
            return unsafe { pack_k_major(run, self.b.form, (k, columns), at, panel) };
        }
        for row in 0..k {
            // SAFETY: as above.
            unsafe {
                let to = panel.add(row * COLUMNS);
                self.b.form.read_to(run.vector, at(row), columns, to);
            }
        }
    }

    unsafe fn store(&self, run: &Run<'_>, block: &Block, row: usize, sums: *mut f32) {
        let batch = self.batches.batch(block.product);
        let (first, n) = (block.columns.start, block.columns.len());
        // SAFETY: the columns are inside `c`, `y` and the sums; in place, `c` is read first.
        unsafe {
            let results = std::slice::from_raw_parts_mut(sums, n);
            match &self.c {
                Some(c) => {
                    let mut buffer = [0.0; COLUMNS];
                    let from = c.at(&batch, row, first);
                    c.form.read_to(run.vector, from, n, buffer.as_mut_ptr());
                    for (result, c) in results.iter_mut().zip(&buffer) {
                        *result = self.alpha * *result + self.beta * c;
                    }
                }
                None => results.iter_mut().for_each(|y| *y *= self.alpha),
            }
            let to = self.y.at(&batch, row, first);
            self.y.form.write(run.vector, sums, n, to);
        }
    }
}

impl Kernel for Gemm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by this function's contract.
        unsafe { multiply(self, run, &self.cut, run.scratch.get()) };
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        Cut::scratch_bytes(self.n_threads)
    }

    fn name(&self) -> &'static str {
        "gemm"
    }
}
