//! Products of plain float weights with f32 activations.

use kovar_core::DType;
use kovar_core::plain::{F8E4M3, F8E5M2};

use super::kernels::{FloatCall, Kernels};
use super::panel::half_to_f32;
use super::views::check_fit;
use super::{ProductError, Rows, RowsMut};
use crate::buffer::ALIGN;
use crate::pool::{ChunkPtr, ThreadPool};

/// Up to this many tokens a product is bound by reading the weights, which are read once. For more
/// tokens it is blocked for the caches.
const FEW_TOKENS: usize = 8;

/// Weight rows of one block.
const BLOCK_ROWS: usize = 64;

/// Elements of a row in one block: four rows and six tokens of them fit an L1 cache.
const BLOCK_K: usize = 768;

/// Tokens of one block: with `BLOCK_K` elements they fill half of a common L2 cache.
const BLOCK_TOKENS: usize = 192;

/// The least weight bytes of a chunk when few tokens are multiplied.
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
    /// 8 bits, 4 of them exponent.
    F8E4M3,
    /// 8 bits, 5 of them exponent.
    F8E5M2,
}

impl FloatDType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            FloatDType::F32 => 4,
            FloatDType::F16 | FloatDType::BF16 => 2,
            FloatDType::F8E4M3 | FloatDType::F8E5M2 => 1,
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
            DType::F8E4M3 => Ok(FloatDType::F8E4M3),
            DType::F8E5M2 => Ok(FloatDType::F8E5M2),
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
        check_fit(n, k, stride, data.len() / dtype.bytes())?;
        Ok(Self {
            data,
            dtype,
            n,
            k,
            row_bytes: stride.saturating_mul(dtype.bytes()),
        })
    }

    /// Bytes of scratch memory, aligned to 64 bytes, that [`multiply`](Self::multiply) takes.
    pub fn scratch_bytes(n_threads: usize, m: usize) -> usize {
        if m <= FEW_TOKENS {
            return 0;
        }
        n_threads.saturating_mul(BLOCK_BYTES)
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
        let needed = Self::scratch_bytes(pool.n_threads(), x.rows());
        let given = scratch.len();
        if given < needed || (needed > 0 && !scratch.as_ptr().addr().is_multiple_of(ALIGN)) {
            return Err(ProductError::Scratch { needed, given });
        }
        self.multiply_many(kernels, pool, x, &y, scratch);
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
                    add: false,
                });
            }
        });
    }

    fn multiply_many(
        &self,
        kernels: &'static Kernels,
        pool: &ThreadPool,
        x: Rows<'_>,
        y: &RowsMut<'_>,
        scratch: &mut [u8],
    ) {
        let row_blocks = self.n.div_ceil(BLOCK_ROWS);
        let token_blocks = x.rows().div_ceil(BLOCK_TOKENS);
        let scratch = ChunkPtr::new(scratch.as_mut_ptr());
        pool.run(row_blocks * token_blocks, &|chunk, worker| {
            let first = chunk % row_blocks * BLOCK_ROWS;
            let rows = BLOCK_ROWS.min(self.n - first);
            let token = chunk / row_blocks * BLOCK_TOKENS;
            let tokens = BLOCK_TOKENS.min(x.rows() - token);
            // SAFETY: `scratch` has `BLOCK_BYTES` for each worker, aligned for f32, and only this
            // thread uses this worker's.
            let block = unsafe {
                let start = scratch.get().add(worker * BLOCK_BYTES).cast::<f32>();
                std::slice::from_raw_parts_mut(start, BLOCK_ROWS * BLOCK_K)
            };
            for from in (0..self.k.max(1)).step_by(BLOCK_K) {
                let k = BLOCK_K.min(self.k - from);
                let (w, w_stride) = self.block_as_f32(first, rows, from, k, block);
                for row in (0..rows).step_by(kernels.float_rows) {
                    // SAFETY: the rows and `k` elements are inside the block, the tokens and
                    // elements inside `x`, the tokens and rows inside `y`; no other chunk writes
                    // these elements of `y`.
                    unsafe {
                        (kernels.float[FloatDType::F32 as usize])(&FloatCall {
                            w: w.add(row * w_stride),
                            w_stride,
                            rows: kernels.float_rows.min(rows - row),
                            k,
                            x: x.as_ptr().add(token * x.stride() + from),
                            x_stride: x.stride(),
                            tokens,
                            y: y.as_mut_ptr().add(token * y.stride() + first + row),
                            y_stride: y.stride(),
                            add: from > 0,
                        });
                    }
                }
            }
        });
    }

    /// Rows `first..first + rows`, elements `from..from + k`, as f32: in place if they are f32,
    /// else converted into `block`. Also returns the bytes from one row to the next.
    fn block_as_f32(
        &self,
        first: usize,
        rows: usize,
        from: usize,
        k: usize,
        block: &mut [f32],
    ) -> (*const u8, usize) {
        let bytes = &self.data[first * self.row_bytes + from * self.dtype.bytes()..];
        if self.dtype == FloatDType::F32 && cfg!(target_endian = "little") {
            return (bytes.as_ptr(), self.row_bytes);
        }
        for (row, out) in block.chunks_exact_mut(k.max(1)).take(rows).enumerate() {
            let bytes = &bytes[row * self.row_bytes..][..k * self.dtype.bytes()];
            convert(self.dtype, bytes, &mut out[..k]);
        }
        (block.as_ptr().cast(), k * size_of::<f32>())
    }
}

/// Bytes of a block of weights as f32.
const BLOCK_BYTES: usize = BLOCK_ROWS * BLOCK_K * size_of::<f32>();

fn convert(dtype: FloatDType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        FloatDType::F32 => each(bytes, out, f32::from_le_bytes),
        FloatDType::F16 => each(bytes, out, |bytes| half_to_f32(u16::from_le_bytes(bytes))),
        FloatDType::BF16 => each(bytes, out, |[low, high]| {
            f32::from_le_bytes([0, 0, low, high])
        }),
        FloatDType::F8E4M3 => each(bytes, out, |[bits]| F8E4M3(bits).to_f32()),
        FloatDType::F8E5M2 => each(bytes, out, |[bits]| F8E5M2(bits).to_f32()),
    }
}

#[inline(always)]
fn each<const N: usize>(bytes: &[u8], out: &mut [f32], to_f32: impl Fn([u8; N]) -> f32) {
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *out = to_f32(*bytes);
    }
}
