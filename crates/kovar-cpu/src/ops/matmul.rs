//! Products with a weight on the left.
//!
//! A prepared quantised weight is multiplied with 8-bit activations, and consecutive products of
//! the same activations share their codes and one job of the pool. Everything else is multiplied
//! in f32: float rows in place, other rows decoded a few at a time.

use kovar_core::error::DeviceError;
use kovar_core::ops::{Op, Precision};
use kovar_core::{Dims, Layout, MAX_RANK, NodeRef, collapse};

use super::matrix::{Batches, Matrix};
use super::rows::GRAIN;
use super::{Compiled, Entry, F32, FLOATS, Taken, WEIGHTS, malformed};
use crate::buffer::ALIGN;
use crate::pack::PackedMatrix;
use crate::pool::ChunkPtr;
use crate::product::{
    FloatDType, FloatMatrix, ProductError, QuantizedProduct, QuantizedRows, Rows, RowsMut,
};
use crate::program::{Kernel, Operand, Resolver, Run};

/// Rows of a weight that are decoded at a time.
const DECODED_ROWS: usize = 256;

/// The most products that share their activations.
const MAX_GROUP: usize = 4;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { WEIGHTS } else { FLOATS },
    result: |_| F32,
    compile,
};

/// How a weight is multiplied.
enum Weight {
    Packed(PackedMatrix<'static>),
    /// In f32.
    Rows(WeightRows),
}

/// Rows of a weight that are multiplied in f32.
pub(super) struct WeightRows {
    matrix: Matrix,
    /// Rows of a matrix.
    n: usize,
    /// Elements of a row.
    k: usize,
    /// The dtype of rows that are multiplied in place; other rows are decoded.
    float: Option<FloatDType>,
}

impl WeightRows {
    pub(super) fn new(w: &Operand<'_>, matrix: Matrix) -> Self {
        let float = FloatDType::try_from(w.dtype).ok();
        Self {
            n: w.layout.dims().from_end(1),
            k: w.layout.dims().from_end(0),
            float: float.filter(|_| matrix.form.stride() == 1),
            matrix,
        }
    }

    /// Elements of decoded rows for which [`multiply`](Self::multiply) takes room.
    pub(super) fn decoded_len(&self) -> usize {
        match self.float {
            Some(_) => 0,
            None => DECODED_ROWS.saturating_mul(self.k),
        }
    }

    /// `y = x w^T`, for the matrix `offset` bytes from the first; rows of `y` are `y_stride`
    /// elements apart.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the matrix is inside the weight, `y` has a row of `n` elements for each
    /// row of `x`, and `decoded` has room for [`decoded_len`](Self::decoded_len) elements.
    pub(super) unsafe fn multiply(
        &self,
        run: &Run<'_>,
        offset: usize,
        x: Rows<'_>,
        (y, y_stride): (*mut f32, usize),
        decoded: *mut f32,
        scratch: &mut [u8],
    ) -> Result<(), ProductError> {
        let (n, k, row_bytes) = (self.n, self.k, self.matrix.row);
        let start = self.matrix.start.get().wrapping_add(offset);
        // SAFETY: by this function's contract.
        unsafe {
            if let Some(dtype) = self.float {
                let stride = row_bytes / dtype.bytes();
                let elements = n.checked_sub(1).map_or(0, |last| last * stride + k);
                let data = std::slice::from_raw_parts(start, elements * dtype.bytes());
                let w = FloatMatrix::new(data, dtype, n, k, stride)?;
                let y = RowsMut::from_raw_parts(y, x.rows(), n, y_stride);
                return w.multiply(run.product, run.pool, x, y, scratch);
            }
            for row in (0..n).step_by(DECODED_ROWS) {
                let rows = DECODED_ROWS.min(n - row);
                let from = start.wrapping_add(row * row_bytes);
                decode_rows(run, &self.matrix, from, rows, k, decoded);
                let bytes = rows * k * size_of::<f32>();
                let data = std::slice::from_raw_parts(decoded.cast::<u8>(), bytes);
                let w = FloatMatrix::new(data, FloatDType::F32, rows, k, k)?;
                let y = RowsMut::from_raw_parts(y.add(row), x.rows(), rows, y_stride);
                w.multiply(run.product, run.pool, x, y, scratch)?;
            }
        }
        Ok(())
    }
}

/// A weight, its number of rows, and the result.
struct Product {
    weight: Weight,
    n: usize,
    y: Matrix,
}

struct Matmul {
    /// The activations, `m` rows of `k` elements in each batch.
    x: Matrix,
    m: usize,
    k: usize,
    /// One, or several if all weights are packed, there is one batch and the rows of the results
    /// have no gaps.
    products: Vec<Product>,
    batches: Batches,
    /// Consecutive batches of `x` along each dimension that share a batch of the weight.
    repeats: [usize; MAX_RANK],
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let kernel = matmul(resolver, node)?;
    Ok(Box::new(
        kernel.ok_or_else(|| malformed(resolver, node, "w"))?,
    ))
}

/// The kernel of the longest prefix of `nodes` whose nodes are products of the same activations
/// with packed weights; `None` if it has fewer than two nodes.
pub(super) fn compile_group(
    resolver: &Resolver<'_>,
    nodes: &[NodeRef<'_>],
) -> Result<Option<Taken>, DeviceError> {
    let activations = |node: &NodeRef<'_>| match node.op() {
        Op::Matmul(_) => node.input(1).copied(),
        _ => None,
    };
    let Some(x) = nodes.first().and_then(activations) else {
        return Ok(None);
    };
    let mut group: Option<Matmul> = None;
    let mut written: Vec<std::ops::Range<usize>> = Vec::new();
    for node in nodes.iter().take(MAX_GROUP) {
        if activations(node) != Some(x) {
            break;
        }
        let Some(mut next) = matmul(resolver, *node)? else {
            break;
        };
        let joins = next.batches.count() == 1
            && next
                .products
                .iter()
                .all(|product| matches!(product.weight, Weight::Packed(_)) && product.y.is_plain());
        let y = resolver.write(*node)?;
        let span = y.layout.span();
        let first = y.start().get().addr();
        let bytes = first..first + y.bytes(span.len());
        // A result that no node reads may share its memory with a later one.
        let apart = written
            .iter()
            .all(|other| bytes.end <= other.start || other.end <= bytes.start);
        if !joins || !apart {
            break;
        }
        written.push(bytes);
        match &mut group {
            None => group = Some(next),
            Some(group) => group.products.append(&mut next.products),
        }
    }
    let taken = written.len();
    Ok(group
        .filter(|_| taken > 1)
        .map(|group| (Box::new(group) as Box<dyn Kernel>, taken)))
}

/// The layout without its last dim.
fn without_last(layout: &Layout) -> Option<Layout> {
    let outer = |dims: &Dims| Dims::new(dims.split_last()?.1);
    Layout::strided(outer(layout.dims())?, outer(layout.strides())?, 0)
}

/// The kernel of one node; `None` for dims that the graph's checks exclude.
fn matmul(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Result<Option<Matmul>, DeviceError> {
    let (w, x) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let n_threads = resolver.shared.pool.n_threads();
    Ok(assemble(node, &w, &x, &y, n_threads))
}

fn assemble(
    node: NodeRef<'_>,
    w: &Operand<'_>,
    x: &Operand<'_>,
    y: &Operand<'_>,
    n_threads: usize,
) -> Option<Matmul> {
    let (x_outer, y_outer) = (without_last(&x.layout)?, without_last(&y.layout)?);
    let w_dims = w.layout.dims();
    let (w_batches, _) = w_dims.split_at_checked(w_dims.rank().checked_sub(2)?)?;
    let mut repeats = [1; MAX_RANK];
    let mut w_strides = [0; MAX_RANK];
    // A batch of `x` is multiplied with its batch of the weight. A weight without batches is
    // multiplied with all rows of `x`.
    let batched = w_batches.iter().any(|&size| size != 1);
    let (dims, x_strides, y_strides) = if batched {
        let dims = *x_outer.dims();
        let added = dims.rank().checked_sub(w_batches.len() + 1)?;
        for (i, &size) in w_batches.iter().enumerate() {
            *repeats.get_mut(added + i)? = (dims[added + i].checked_div(size)?).max(1);
            *w_strides.get_mut(added + i)? = w.layout.strides()[i];
        }
        (dims, *x_outer.strides(), *y_outer.strides())
    } else {
        let rows = collapse(&[&x_outer, &y_outer])?;
        let strides = |i: usize| rows.strides.get(i).copied();
        (rows.dims, strides(0)?, strides(1)?)
    };
    let (&m, outer) = dims.split_last()?;
    let (w_outer, _) = w_strides.split_at_checked(outer.len())?;
    let matrix = Matrix::new(w, &[w_outer, &[w.layout.stride_from_end(1)]].concat());
    let weight = match packed_matrix(node, w) {
        Some(packed) => Weight::Packed(packed),
        None => Weight::Rows(WeightRows::new(w, matrix)),
    };
    Some(Matmul {
        x: Matrix::new(x, &x_strides),
        m,
        k: w_dims.from_end(0),
        products: vec![Product {
            weight,
            n: w_dims.from_end(1),
            y: Matrix::new(y, &y_strides),
        }],
        batches: Batches::new(outer)?,
        repeats,
        n_threads,
    })
}

/// The packed form of a weight, if it has one and the node allows 8-bit activations.
fn packed_matrix(node: NodeRef<'_>, w: &Operand<'_>) -> Option<PackedMatrix<'static>> {
    let value = node.input(0).filter(|_| takes_packed(node.op()))?;
    let weight = w.whole_weight(value, node.storage_of(value).bytes)?;
    let matrix = weight.matrix()?.ok()?;
    let dims = w.layout.dims();
    let same =
        matrix.layout().rows() == dims.from_end(1) && matrix.layout().k() == dims.from_end(0);
    // SAFETY: the weight's memory never moves or changes, and the program that the kernel belongs
    // to holds on to its buffer.
    same.then(|| unsafe { std::mem::transmute::<PackedMatrix<'_>, PackedMatrix<'static>>(matrix) })
}

/// Whether an operation is a product that multiplies prepared rows of its weight, operand 0.
pub(crate) fn takes_packed(op: &Op) -> bool {
    matches!(op, Op::Matmul(op) if op.precision == Precision::Default)
}

/// The scratch memory of a product of plain activations with a prepared weight.
pub(super) fn scratch_bytes(node: NodeRef<'_>, n_threads: usize) -> Option<usize> {
    let (w, x) = (node.input(0)?, node.input(1)?);
    let (m, k) = (x.dims().from_end(1), x.dims().from_end(0));
    if !w.dtype.is_quantized() {
        return Some(FloatMatrix::scratch_bytes(n_threads, m));
    }
    let codes = QuantizedRows::bytes(m, k).next_multiple_of(ALIGN);
    Some(codes.saturating_add(QuantizedProduct::scratch_bytes(n_threads, k)))
}

/// Sizes of the regions of the scratch memory, in bytes, in their order.
struct Scratch {
    /// `x` in f32 without gaps.
    x: usize,
    /// A result in f32 without gaps.
    y: usize,
    /// The codes of `x`.
    codes: usize,
    /// Decoded rows of a weight.
    decoded: usize,
    /// Scratch memory of the products.
    product: usize,
}

impl Scratch {
    fn total(&self) -> usize {
        self.x + self.y + self.codes + self.decoded + self.product
    }
}

impl Matmul {
    fn scratch(&self) -> Scratch {
        let floats = |a: usize, b: usize| {
            let bytes = a.saturating_mul(b).saturating_mul(size_of::<f32>());
            bytes.next_multiple_of(ALIGN)
        };
        let widest = self
            .products
            .iter()
            .filter(|p| !p.y.is_plain())
            .map(|p| p.n);
        let packed = |product: &Product| matches!(product.weight, Weight::Packed(_));
        let any_packed = self.products.iter().any(packed);
        let decoded = |product: &Product| match &product.weight {
            Weight::Packed(_) => 0,
            Weight::Rows(rows) => rows.decoded_len(),
        };
        let decoded = self.products.iter().map(decoded).max();
        let product = if any_packed {
            QuantizedProduct::scratch_bytes(self.n_threads, self.k)
        } else {
            FloatMatrix::scratch_bytes(self.n_threads, self.m)
        };
        Scratch {
            x: if self.x.is_plain() {
                0
            } else {
                floats(self.m, self.k)
            },
            y: widest.max().map_or(0, |n| floats(self.m, n)),
            codes: if any_packed {
                QuantizedRows::bytes(self.m, self.k).next_multiple_of(ALIGN)
            } else {
                0
            },
            decoded: floats(decoded.unwrap_or(0), 1),
            product: product.next_multiple_of(ALIGN),
        }
    }

    /// The byte offsets of a batch in `x`, in the weight and in the result.
    fn offsets(&self, batch: usize, w: &Matrix, y: &Matrix) -> [usize; 3] {
        let batch = self.batches.batch(batch);
        let shared = std::array::from_fn(|dim| batch[dim] / self.repeats[dim]);
        [self.x.offset(&batch), w.offset(&shared), y.offset(&batch)]
    }

    /// Computes one batch.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn batch(&self, run: &Run<'_>, batch: usize) -> Result<(), ProductError> {
        let scratch = self.scratch();
        let base = run.scratch.get();
        let y_copy = base.wrapping_add(scratch.x);
        let codes = y_copy.wrapping_add(scratch.y);
        let decoded = codes.wrapping_add(scratch.codes);
        let product_scratch = decoded.wrapping_add(scratch.decoded);
        let Some(first) = self.products.first() else {
            return Ok(());
        };
        let w = match &first.weight {
            Weight::Rows(rows) => &rows.matrix,
            Weight::Packed(_) => &first.y,
        };
        let [x_offset, w_offset, y_offset] = self.offsets(batch, w, &first.y);
        let row_elements = |matrix: &Matrix| matrix.row / size_of::<f32>();
        // SAFETY: by this function's contract and `scratch_bytes`, which sums the same regions.
        unsafe {
            let product_scratch = std::slice::from_raw_parts_mut(product_scratch, scratch.product);
            let x = if self.x.is_plain() {
                let start = self.x.start.get().wrapping_add(x_offset).cast::<f32>();
                Rows::from_raw_parts(start, self.m, self.k, row_elements(&self.x))
            } else {
                self.copy_x(run, x_offset, base.cast());
                Rows::from_raw_parts(base.cast::<f32>(), self.m, self.k, self.k)
            };
            let target = |product: &Product| {
                let start = product.y.start.get().wrapping_add(y_offset);
                if product.y.is_plain() {
                    (start.cast::<f32>(), row_elements(&product.y))
                } else {
                    (y_copy.cast::<f32>(), product.n)
                }
            };
            match &first.weight {
                Weight::Packed(_) => {
                    let codes = std::slice::from_raw_parts_mut(codes, scratch.codes);
                    let x = QuantizedRows::quantize(run.product, run.pool, x, codes)?;
                    self.multiply_packed(run, &x, target, product_scratch)?;
                }
                Weight::Rows(w) => {
                    let (y, decoded) = (target(first), decoded.cast());
                    w.multiply(run, w_offset, x, y, decoded, product_scratch)?;
                }
            }
            if !first.y.is_plain() {
                for row in 0..self.m {
                    let to = first
                        .y
                        .start
                        .get()
                        .wrapping_add(y_offset + row * first.y.row);
                    let from = y_copy.cast::<f32>().add(row * first.n);
                    first.y.form.write(run.vector, from, first.n, to);
                }
            }
        }
        Ok(())
    }

    /// Multiplies the codes with all packed weights.
    ///
    /// # Safety
    /// `target` gives the start of a result, which is writable, and its row stride.
    unsafe fn multiply_packed(
        &self,
        run: &Run<'_>,
        x: &QuantizedRows<'_>,
        target: impl Fn(&Product) -> (*mut f32, usize),
        scratch: &mut [u8],
    ) -> Result<(), ProductError> {
        let mut products: [Option<QuantizedProduct<'_>>; MAX_GROUP] = [const { None }; MAX_GROUP];
        let mut n_products = 0;
        for (slot, product) in products.iter_mut().zip(&self.products) {
            if let Weight::Packed(w) = &product.weight {
                let (start, stride) = target(product);
                // SAFETY: by this function's contract.
                let y = unsafe { RowsMut::from_raw_parts(start, self.m, product.n, stride) };
                *slot = Some(QuantizedProduct { w: *w, y });
                n_products += 1;
            }
        }
        // One job takes one slice of products, so each number of products is a case.
        match (n_products, products) {
            (1, [Some(a), ..]) => QuantizedProduct::run(run.pool, x, &[a], scratch),
            (2, [Some(a), Some(b), ..]) => QuantizedProduct::run(run.pool, x, &[a, b], scratch),
            (3, [Some(a), Some(b), Some(c), _]) => {
                QuantizedProduct::run(run.pool, x, &[a, b, c], scratch)
            }
            (_, [Some(a), Some(b), Some(c), Some(d)]) => {
                QuantizedProduct::run(run.pool, x, &[a, b, c, d], scratch)
            }
            _ => Ok(()),
        }
    }

    /// Copies the activations of a batch as f32 without gaps.
    ///
    /// # Safety
    /// As [`Kernel::run`]; `to` has room for them.
    unsafe fn copy_x(&self, run: &Run<'_>, offset: usize, to: *mut f32) {
        let from = self.x.start.get().wrapping_add(offset);
        // SAFETY: by this function's contract.
        unsafe { decode_rows(run, &self.x, from, self.m, self.k, to) }
    }
}

/// Reads `rows` rows of `k` elements, the first at `from`, as f32 without gaps.
///
/// # Safety
/// The rows, spaced as those of `matrix`, are readable, and `to` has room for them.
unsafe fn decode_rows(
    run: &Run<'_>,
    matrix: &Matrix,
    from: *mut u8,
    rows: usize,
    k: usize,
    to: *mut f32,
) {
    let (from, to) = (ChunkPtr::new(from), ChunkPtr::new(to));
    run.pool
        .run_ranges(rows, GRAIN.div_ceil(k.max(1)), &|rows, _| {
            for row in rows {
                // SAFETY: by this function's contract; rows do not overlap in `to`.
                unsafe {
                    let from = from.get().wrapping_add(row * matrix.row);
                    matrix
                        .form
                        .read_to(run.vector, from, k, to.get().add(row * k));
                }
            }
        });
}

impl Kernel for Matmul {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        for batch in 0..self.batches.count() {
            // SAFETY: by this function's contract.
            unsafe { self.batch(run, batch)? };
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch().total()
    }

    fn name(&self) -> &'static str {
        match self.products.first().map(|product| &product.weight) {
            Some(Weight::Rows(rows)) if rows.float.is_some() => "matmul_float",
            Some(Weight::Rows(_)) => "matmul_decoded",
            _ => "matmul_quantized",
        }
    }
}
