//! Products of plain float weights with f32 activations.

use kovar_core::DType;

use super::kernels::{FloatCall, Kernels};
use super::{ProductError, Rows, RowsMut};
use crate::buffer::ALIGN;
use crate::pool::{SharedMut, ThreadPool};

/// Up to this many tokens a product is bound by reading the weights and rows are taken one by
/// one; beyond it goes through the GEMM crate.
const FEW_TOKENS: usize = 8;

/// Weight rows of one chunk of a matrix-matrix product.
const GEMM_ROWS: usize = 96;

/// Tokens of one chunk of a matrix-matrix product.
const GEMM_TOKENS: usize = 256;

/// The least weight bytes worth a chunk of their own when few tokens are multiplied.
const GRAIN_BYTES: usize = 16 << 10;

const CHUNKS_PER_THREAD: usize = 8;

/// A float dtype that weights may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatDType {
    /// binary32.
    F32,
    /// binary16.
    F16,
    /// bfloat16.
    BF16,
}

impl FloatDType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            FloatDType::F32 => 4,
            FloatDType::F16 | FloatDType::BF16 => 2,
        }
    }
}

impl TryFrom<DType> for FloatDType {
    type Error = ProductError;

    fn try_from(dtype: DType) -> Result<Self, ProductError> {
        match dtype {
            DType::F32 => Ok(FloatDType::F32),
            DType::F16 => Ok(FloatDType::F16),
            DType::BF16 => Ok(FloatDType::BF16),
            _ => Err(ProductError::NotFloat { dtype }),
        }
    }
}

/// A `[n, k]` weight of plain floats, little-endian, of any alignment.
#[derive(Clone, Copy, Debug)]
pub struct FloatMatrix<'a> {
    data: &'a [u8],
    dtype: FloatDType,
    n: usize,
    k: usize,
    row_bytes: usize,
}

impl<'a> FloatMatrix<'a> {
    /// A view of `data` as `n` rows of `k` elements, `stride` elements apart.
    ///
    /// # Errors
    /// [`ProductError::ViewTooLarge`] if `data` is too short.
    pub fn new(
        data: &'a [u8],
        dtype: FloatDType,
        n: usize,
        k: usize,
        stride: usize,
    ) -> Result<Self, ProductError> {
        let len = data.len() / dtype.bytes();
        let end = n
            .checked_sub(1)
            .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(k));
        if end.is_none_or(|end| end > len) {
            return Err(ProductError::ViewTooLarge {
                rows: n,
                cols: k,
                stride,
                len,
            });
        }
        Ok(Self {
            data,
            dtype,
            n,
            k,
            row_bytes: stride.saturating_mul(dtype.bytes()),
        })
    }

    /// Bytes of scratch memory, aligned to 64 bytes, that [`multiply`](Self::multiply) takes.
    pub fn scratch_bytes(n_threads: usize, m: usize, k: usize) -> usize {
        if m <= FEW_TOKENS {
            return 0;
        }
        n_threads.saturating_mul(chunk_scratch(k))
    }

    /// `y[m, n] = x[m, k] * w[n, k]^T`, products and sums in f32.
    ///
    /// # Errors
    /// [`ProductError::Mismatch`] if shapes disagree, [`ProductError::Scratch`].
    pub fn multiply(
        &self,
        kernels: &'static Kernels,
        pool: &ThreadPool,
        x: Rows<'_>,
        y: RowsMut<'_>,
        scratch: &mut [u8],
    ) -> Result<(), ProductError> {
        ProductError::check("elements of a weight's row", x.cols(), self.k)?;
        ProductError::check("columns of y", self.n, y.cols())?;
        ProductError::check("rows of y", x.rows(), y.rows())?;
        if self.n == 0 || x.rows() == 0 {
            return Ok(());
        }
        if x.rows() <= FEW_TOKENS {
            self.multiply_few(kernels, pool, x, &y);
            return Ok(());
        }
        let needed = Self::scratch_bytes(pool.n_threads(), x.rows(), self.k);
        let given = scratch.len();
        if given < needed || (needed > 0 && !scratch.as_ptr().addr().is_multiple_of(ALIGN)) {
            return Err(ProductError::Scratch { needed, given });
        }
        self.multiply_many(pool, x, &y, scratch);
        Ok(())
    }

    fn multiply_few(
        &self,
        kernels: &'static Kernels,
        pool: &ThreadPool,
        x: Rows<'_>,
        y: &RowsMut<'_>,
    ) {
        let units = self.n.div_ceil(kernels.float_rows);
        let most = (pool.n_threads() * CHUNKS_PER_THREAD).min(units);
        let bytes = self.n.saturating_mul(self.k * self.dtype.bytes());
        let n_chunks = (bytes / GRAIN_BYTES).clamp(1, most);
        let kernel = kernels.float[self.dtype as usize];
        pool.run(n_chunks, &|chunk, _| {
            let bound = |i: usize| {
                let unit = (i as u128 * units as u128 / n_chunks as u128) as usize;
                (unit * kernels.float_rows).min(self.n)
            };
            let (first, end) = (bound(chunk), bound(chunk + 1));
            // SAFETY: the rows are inside the weight, `x` has rows of `k` elements, `y` has `n`
            // columns, and chunks do not share rows.
            unsafe {
                kernel(&FloatCall {
                    w: self.data.as_ptr().add(first * self.row_bytes),
                    w_stride: self.row_bytes,
                    rows: end - first,
                    k: self.k,
                    x: x.as_ptr(),
                    x_stride: x.stride(),
                    tokens: x.rows(),
                    y: y.as_mut_ptr().add(first),
                    y_stride: y.stride(),
                });
            }
        });
    }

    fn multiply_many(&self, pool: &ThreadPool, x: Rows<'_>, y: &RowsMut<'_>, scratch: &mut [u8]) {
        let row_chunks = self.n.div_ceil(GEMM_ROWS);
        let token_chunks = x.rows().div_ceil(GEMM_TOKENS);
        let scratch = SharedMut::new(scratch.as_mut_ptr());
        pool.run(row_chunks * token_chunks, &|chunk, worker| {
            let first = chunk % row_chunks * GEMM_ROWS;
            let rows = GEMM_ROWS.min(self.n - first);
            let token = chunk / row_chunks * GEMM_TOKENS;
            let tokens = GEMM_TOKENS.min(x.rows() - token);
            // SAFETY: `scratch` has `chunk_scratch(k)` bytes for each worker, aligned for f32,
            // and only this thread uses this worker's.
            let panel = unsafe {
                let start = scratch
                    .get()
                    .add(worker * chunk_scratch(self.k))
                    .cast::<f32>();
                std::slice::from_raw_parts_mut(start, rows * self.k)
            };
            let (w, w_stride) = self.rows_as_f32(first, rows, panel);
            // SAFETY: `w` is `rows` rows of `k` elements, `w_stride` apart; `x` and `y` have the
            // tokens and columns; no other chunk writes this part of `y`.
            unsafe {
                gemm::gemm(
                    tokens,
                    rows,
                    self.k,
                    y.as_mut_ptr().add(token * y.stride() + first),
                    1,
                    y.stride() as isize,
                    false,
                    x.as_ptr().add(token * x.stride()),
                    1,
                    x.stride() as isize,
                    w,
                    w_stride as isize,
                    1,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        });
    }

    /// Rows of the weight as f32, in place if they are, else converted into `panel`; and the
    /// stride of the rows.
    fn rows_as_f32(&self, first: usize, rows: usize, panel: &mut [f32]) -> (*const f32, usize) {
        let bytes = &self.data[first * self.row_bytes..];
        let aligned = bytes.as_ptr().cast::<f32>().is_aligned();
        if self.dtype == FloatDType::F32 && aligned && cfg!(target_endian = "little") {
            return (bytes.as_ptr().cast(), self.row_bytes / 4);
        }
        for (row, out) in panel.chunks_exact_mut(self.k.max(1)).take(rows).enumerate() {
            let bytes = &bytes[row * self.row_bytes..][..self.k * self.dtype.bytes()];
            convert(self.dtype, bytes, out);
        }
        (panel.as_ptr(), self.k)
    }
}

fn chunk_scratch(k: usize) -> usize {
    k.saturating_mul(GEMM_ROWS * size_of::<f32>())
        .next_multiple_of(ALIGN)
}

fn convert(dtype: FloatDType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        FloatDType::F32 => {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *out = f32::from_le_bytes(*bytes);
            }
        }
        FloatDType::F16 => {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *out = super::panel::half_to_f32(u16::from_le_bytes(*bytes));
            }
        }
        FloatDType::BF16 => {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *out = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            }
        }
    }
}
