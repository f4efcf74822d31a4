//! Rows of operands: several operands of equal dims are walked together, and a piece of a row is
//! read as f32 and written from f32, whatever its dtype and stride.

use half::{bf16, f16};
use kovar_core::error::DeviceError;
use kovar_core::plain::{F8E4M3, F8E5M2};
use kovar_core::{DType, Dims, Layout, MAX_RANK, NodeRef, collapse, quant};

use super::optional;
use crate::program::{Address, Operand, Resolver, Run};
use crate::vector::{Kernels, Rows};

/// Elements of a piece of a row, a multiple of every block length.
pub(super) const PIECE: usize = 1024;

/// Elements of a unit, by which work is split; a multiple of every block length.
const UNIT: usize = 256;

/// The least units of a chunk.
const GRAIN_UNITS: usize = 64;

/// The least elements of a chunk.
pub(super) const GRAIN: usize = UNIT * GRAIN_UNITS;

/// The dtype and stride of a row's elements: how they are found, read and written.
#[derive(Clone, Copy)]
pub(super) struct RowForm {
    dtype: DType,
    /// Elements between neighbours.
    stride: usize,
}

impl RowForm {
    pub(super) fn of(operand: &Operand<'_>) -> Self {
        let one = operand.layout.dims().from_end(0) <= 1;
        Self {
            dtype: operand.dtype,
            stride: if one {
                1
            } else {
                operand.layout.stride_from_end(0)
            },
        }
    }

    /// Elements of a dtype without gaps.
    pub(super) fn plain(dtype: DType) -> Self {
        Self { dtype, stride: 1 }
    }

    /// Whether elements are f32 without gaps.
    pub(super) fn is_plain(self) -> bool {
        self.dtype == DType::F32 && self.stride == 1
    }

    /// Elements between neighbours, of an F32 row.
    pub(super) fn stride(self) -> usize {
        self.stride
    }

    /// Every `step`-th element. For more than one element, the step is less than the row.
    pub(super) fn every(self, step: usize) -> Self {
        Self {
            stride: self.stride.wrapping_mul(step),
            ..self
        }
    }

    pub(super) fn dtype(self) -> DType {
        self.dtype
    }

    /// The address of element `column` of a row, which is the first of its block.
    pub(super) fn at(self, row: *mut u8, column: usize) -> *mut u8 {
        let blocks = column / self.dtype.block_len() * self.dtype.block_bytes();
        row.wrapping_add(blocks * self.stride)
    }

    /// Reads `n` elements, whole blocks, as f32 and returns their address: in place if they are f32
    /// without gaps, else in `buffer`.
    ///
    /// # Safety
    /// The elements from `from` on are readable, and `buffer` is writable for `n` elements.
    pub(super) unsafe fn read(
        self,
        kernels: &Kernels,
        from: *const u8,
        n: usize,
        buffer: *mut f32,
    ) -> *const f32 {
        // Imported bytes may have any alignment.
        if self.is_plain() && from.cast::<f32>().is_aligned() {
            return from.cast();
        }
        // SAFETY: by this function's contract.
        unsafe { self.read_to(kernels, from, n, buffer) };
        buffer
    }

    /// Reads `n` elements, whole blocks, to `buffer`.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(super) unsafe fn read_to(
        self,
        kernels: &Kernels,
        from: *const u8,
        n: usize,
        buffer: *mut f32,
    ) {
        // SAFETY: by this function's contract.
        unsafe {
            match (self.dtype, self.stride) {
                (DType::F32, 1) => {
                    std::ptr::copy_nonoverlapping(from, buffer.cast::<u8>(), 4 * n);
                }
                (DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2, 1)
                | (DType::Q8_0, _) => {
                    let rows = Rows {
                        rows: 1,
                        n,
                        src: from,
                        stride: 0,
                        dst: buffer,
                        pitch: 0,
                    };
                    self.read_rows(kernels, &rows);
                }
                (DType::I8, 1) => (kernels.load_i8)(from.cast(), n, buffer),
                (DType::I8, stride) => gather(from, stride, n, buffer, |x: i8| f32::from(x)),
                (DType::F32, stride) => gather(from, stride, n, buffer, |x: f32| x),
                (DType::F8E4M3, stride) => {
                    gather(from, stride, n, buffer, |bits| F8E4M3(bits).to_f32());
                }
                (DType::F8E5M2, stride) => {
                    gather(from, stride, n, buffer, |bits| F8E5M2(bits).to_f32());
                }
                (DType::F16, stride) => {
                    gather(from, stride, n, buffer, |bits| {
                        f16::from_bits(bits).to_f32()
                    });
                }
                (DType::BF16, stride) => {
                    gather(from, stride, n, buffer, |bits| {
                        bf16::from_bits(bits).to_f32()
                    });
                }
                (dtype, _) => {
                    let out = std::slice::from_raw_parts_mut(buffer, n);
                    let len = n / dtype.block_len() * dtype.block_bytes();
                    let bytes = std::slice::from_raw_parts(from, len);
                    // The sizes are those of whole blocks, so decoding cannot fail.
                    let _ = quant::decode(dtype, bytes, out);
                }
            }
        }
    }

    /// Reads rows, each of whole blocks. One call of a vector kernel reads all rows if they are
    /// F16, BF16, 8-bit float or Q8_0 without gaps.
    ///
    /// # Safety
    /// Each row is readable, and there is room for its elements.
    pub(super) unsafe fn read_rows(self, kernels: &Kernels, rows: &Rows) {
        // SAFETY: by this function's contract.
        unsafe {
            match (self.dtype, self.stride) {
                (DType::F16, 1) => (kernels.load_f16)(rows),
                (DType::BF16, 1) => (kernels.load_bf16)(rows),
                (DType::F8E4M3, 1) => (kernels.load_f8_e4m3)(rows),
                (DType::F8E5M2, 1) => (kernels.load_f8_e5m2)(rows),
                (DType::Q8_0, _) => (kernels.load_q8_0)(rows),
                _ => {
                    for row in 0..rows.rows {
                        let from = rows.src.wrapping_add(row * rows.stride);
                        let to = rows.dst.wrapping_add(row * rows.pitch);
                        self.read_to(kernels, from, rows.n, to);
                    }
                }
            }
        }
    }

    /// Where results for `to` are computed: in place if they are f32 without gaps, else in
    /// `buffer`.
    pub(super) fn target(self, to: *mut u8, buffer: *mut f32) -> *mut f32 {
        if self.is_plain() { to.cast() } else { buffer }
    }

    /// Writes `n` results, whole blocks, from their [`target`](Self::target) to `to`.
    ///
    /// # Safety
    /// The results are readable and the elements at `to` are writable.
    pub(super) unsafe fn write(
        self,
        kernels: &Kernels,
        results: *const f32,
        n: usize,
        to: *mut u8,
    ) {
        // SAFETY: by this function's contract.
        unsafe {
            match (self.dtype, self.stride) {
                (DType::F32, 1) => {
                    if !std::ptr::addr_eq(results, to) {
                        std::ptr::copy_nonoverlapping(results.cast::<u8>(), to, 4 * n);
                    }
                }
                (DType::F16, 1) => (kernels.store_f16)(results, n, to),
                (DType::BF16, 1) => (kernels.store_bf16)(results, n, to),
                (DType::F32, stride) => scatter(results, stride, n, to, |x| x),
                (DType::F8E4M3, stride) => {
                    scatter(results, stride, n, to, |x| F8E4M3::from_f32(x).0);
                }
                (DType::F8E5M2, stride) => {
                    scatter(results, stride, n, to, |x| F8E5M2::from_f32(x).0);
                }
                (DType::F16, stride) => {
                    scatter(results, stride, n, to, |x| f16::from_f32(x).to_bits());
                }
                (DType::BF16, stride) => {
                    scatter(results, stride, n, to, |x| bf16::from_f32(x).to_bits());
                }
                (dtype, _) => {
                    let values = std::slice::from_raw_parts(results, n);
                    let len = n / dtype.block_len() * dtype.block_bytes();
                    let out = std::slice::from_raw_parts_mut(to, len);
                    // The sizes are those of whole blocks, so encoding cannot fail.
                    let _ = quant::encode(dtype, values, out);
                }
            }
        }
    }
}

/// # Safety
/// `n` elements of `T`, `stride` elements apart, are readable, and `to` is writable.
unsafe fn gather<T: Copy>(
    from: *const u8,
    stride: usize,
    n: usize,
    to: *mut f32,
    f: impl Fn(T) -> f32,
) {
    for i in 0..n {
        // SAFETY: by this function's contract.
        unsafe { *to.add(i) = f(from.cast::<T>().add(i * stride).read_unaligned()) }
    }
}

/// # Safety
/// `n` elements of `T`, `stride` elements apart, are writable, and `from` is readable.
unsafe fn scatter<T>(from: *const f32, stride: usize, n: usize, to: *mut u8, f: impl Fn(f32) -> T) {
    for i in 0..n {
        // SAFETY: by this function's contract.
        unsafe {
            to.cast::<T>()
                .add(i * stride)
                .write_unaligned(f(*from.add(i)))
        }
    }
}

/// The first column and the length of each piece of a row.
pub(super) fn row_pieces(row_len: usize) -> impl Iterator<Item = (usize, usize)> {
    let columns = (0..row_len).step_by(PIECE);
    columns.map(move |column| (column, PIECE.min(row_len - column)))
}

/// An operand of one dimension: a weight, a bias, scales.
#[derive(Clone, Copy)]
pub(super) struct Vector {
    start: Address,
    form: RowForm,
}

impl Vector {
    pub(super) fn of(operand: &Operand<'_>) -> Self {
        Self {
            start: operand.start(),
            form: RowForm::of(operand),
        }
    }

    /// Operand `i` of a node, if it has that many.
    pub(super) fn optional(
        resolver: &Resolver<'_>,
        node: NodeRef<'_>,
        i: usize,
    ) -> Result<Option<Self>, DeviceError> {
        Ok(optional(resolver, node, i)?.map(|operand| Self::of(&operand)))
    }

    /// Elements `first..first + n` as f32, in place or in `buffer`.
    ///
    /// # Safety
    /// As [`RowForm::read`].
    pub(super) unsafe fn read(
        self,
        kernels: &Kernels,
        first: usize,
        n: usize,
        buffer: *mut f32,
    ) -> *const f32 {
        let from = self.form.at(self.start.get(), first);
        // SAFETY: by this function's contract.
        unsafe { self.form.read(kernels, from, n, buffer) }
    }

    /// Element `i` as f32.
    ///
    /// # Safety
    /// The element is readable.
    pub(super) unsafe fn element(self, kernels: &Kernels, i: usize) -> f32 {
        let mut element = 0.0;
        // SAFETY: by this function's contract.
        unsafe { *self.read(kernels, i, 1, &mut element) }
    }
}

/// An operand of `N + 1` dims, by the indices of its rows.
#[derive(Clone, Copy)]
pub(super) struct IndexedRows<const N: usize> {
    start: Address,
    /// Bytes between neighbours along each dimension but the last.
    pub(super) strides: [usize; N],
    pub(super) form: RowForm,
}

impl<const N: usize> IndexedRows<N> {
    /// `None` if there are not `N + 1` dims.
    pub(super) fn new(operand: &Operand<'_>) -> Option<Self> {
        let (_, outer) = operand.layout.strides().split_last()?;
        let strides = <[usize; N]>::try_from(outer).ok()?;
        Some(Self {
            start: operand.start(),
            strides: strides.map(|elements| operand.bytes(elements)),
            form: RowForm::of(operand),
        })
    }

    /// The first element of a row.
    pub(super) fn row(&self, index: [usize; N]) -> *mut u8 {
        let offsets = index.iter().zip(&self.strides).map(|(i, bytes)| i * bytes);
        self.start.get().wrapping_add(offsets.sum())
    }
}

/// Dims or strides of rank 4.
pub(super) fn four(dims: &Dims) -> Option<[usize; 4]> {
    <[usize; 4]>::try_from(&dims[..]).ok()
}

/// `N` operands of equal dims, walked row by row.
pub(super) struct Walk<const N: usize> {
    n_rows: usize,
    row_len: usize,
    rank: usize,
    dims: [usize; MAX_RANK],
    starts: [Address; N],
    /// Bytes between neighbours along each outer dimension.
    strides: [[usize; MAX_RANK]; N],
    pub(super) forms: [RowForm; N],
    /// The operands that are walked; the addresses of the others stay at their first elements.
    used: usize,
}

impl<const N: usize> Walk<N> {
    /// Rows as long as the operands' strides allow; `None` if the dims differ.
    pub(super) fn merged(operands: [&Operand<'_>; N]) -> Option<Self> {
        let layouts = operands.map(|operand| &operand.layout);
        let merged = collapse(&layouts)?;
        let mut joined = operands.map(|operand| *operand);
        for (operand, strides) in joined.iter_mut().zip(&merged.strides) {
            let offset = operand.layout.offset();
            let layout = Layout::strided(merged.dims, *strides, offset)?;
            *operand = operand.with_layout(layout);
        }
        Some(Self::over(joined))
    }

    /// Rows along the last dimension; `None` if the dims differ.
    pub(super) fn rows(operands: [&Operand<'_>; N]) -> Option<Self> {
        let dims = operands.first()?.layout.dims();
        let same = operands.iter().all(|operand| operand.layout.dims() == dims);
        (same && dims.rank() > 0).then(|| Self::over(operands.map(|operand| *operand)))
    }

    fn over(operands: [Operand<'_>; N]) -> Self {
        let mut walk = Self {
            n_rows: 1,
            row_len: 1,
            rank: 0,
            dims: [1; MAX_RANK],
            starts: operands.map(|operand| operand.start()),
            strides: [[0; MAX_RANK]; N],
            forms: operands.map(|operand| RowForm::of(&operand)),
            used: N,
        };
        let Some(first) = operands.first() else {
            return walk;
        };
        let (outer, row) = first
            .layout
            .dims()
            .split_at(first.layout.dims().rank().saturating_sub(1));
        walk.row_len = row.iter().product();
        walk.n_rows = outer.iter().product();
        walk.rank = outer.len();
        walk.dims[..outer.len()].copy_from_slice(outer);
        for (strides, operand) in walk.strides.iter_mut().zip(&operands) {
            for (stride, &elements) in strides.iter_mut().zip(operand.layout.strides().iter()) {
                *stride = operand.bytes(elements);
            }
        }
        walk
    }

    /// Walks only the first `used` operands.
    pub(super) fn using(self, used: usize) -> Self {
        Self {
            used: used.min(N),
            ..self
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn row_len(&self) -> usize {
        self.row_len
    }

    /// The first elements of a row.
    pub(super) fn row(&self, mut row: usize) -> [*mut u8; N] {
        let mut at = self.starts.map(Address::get);
        for dim in (0..self.rank).rev() {
            let index = row % self.dims[dim];
            row /= self.dims[dim];
            for (at, strides) in at.iter_mut().zip(&self.strides).take(self.used) {
                *at = at.wrapping_add(index * strides[dim]);
            }
        }
        at
    }

    /// Calls `f` with the addresses and the length of each piece of the rows: at most [`PIECE`]
    /// elements, whole blocks. Large work is spread over the pool.
    pub(super) fn pieces(&self, run: &Run<'_>, f: &(impl Fn([*mut u8; N], usize) + Sync)) {
        let elements = self.n_rows * self.row_len;
        let units = elements.div_ceil(UNIT);
        run.pool.run_ranges(units, GRAIN_UNITS, &|range, _| {
            let (mut at, end) = (range.start * UNIT, elements.min(range.end * UNIT));
            while at < end {
                let (row, mut column) = (at / self.row_len, at % self.row_len);
                let starts = self.row(row);
                let row_end = self.row_len.min(column + end - at);
                at += row_end - column;
                while column < row_end {
                    let n = PIECE.min(row_end - column);
                    let mut piece = starts;
                    for (start, form) in piece.iter_mut().zip(&self.forms).take(self.used) {
                        *start = form.at(*start, column);
                    }
                    f(piece, n);
                    column += n;
                }
            }
        });
    }

    /// Calls `f` with the index of each row, its addresses and the worker. Large work is spread
    /// over the pool.
    pub(super) fn each_row(&self, run: &Run<'_>, f: &(impl Fn(usize, [*mut u8; N], usize) + Sync)) {
        let grain = GRAIN.div_ceil(self.row_len.max(1));
        run.pool.run_ranges(self.n_rows, grain, &|rows, worker| {
            for row in rows {
                f(row, self.row(row), worker);
            }
        });
    }
}

/// An operand repeated to other dims; `None` if it doesn't broadcast to them.
pub(super) fn broadcast<'a>(operand: &Operand<'a>, dims: &Dims) -> Option<Operand<'a>> {
    Some(operand.with_layout(operand.layout.broadcast_to(*dims)?))
}

/// An operand of one element a row, or of no row dimension, repeated along rows of other dims.
pub(super) fn repeated<'a>(operand: &Operand<'a>, dims: &Dims) -> Option<Operand<'a>> {
    let outer = dims.rank().checked_sub(1)?;
    let mut strides = [0; MAX_RANK];
    for (at, stride) in strides.iter_mut().enumerate().take(outer) {
        *stride = *operand.layout.strides().get(at)?;
    }
    let strides = Dims::new(strides.get(..dims.rank())?)?;
    let layout = Layout::strided(*dims, strides, operand.layout.offset())?;
    Some(operand.with_layout(layout))
}

/// An operand with its rows reduced to their first elements: the last dim becomes 1.
pub(super) fn row_starts<'a>(operand: &Operand<'a>) -> Option<Operand<'a>> {
    let dims = operand.layout.dims().with_last(1);
    let strides = operand.layout.strides().with_last(0);
    let layout = Layout::strided(dims, strides, operand.layout.offset())?;
    Some(operand.with_layout(layout))
}
