//! Float kernels for AVX-512: dot products of four rows and up to six tokens, 16 elements at a
//! time.

// Tiles are indexed by token and row, as in the formulas.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use kovar_core::plain::{F8E4M3, F8E5M2};

use super::kernels::{FloatCall, FloatFn};

/// Rows of a tile.
const ROWS: usize = 4;

/// The most tokens of a tile: its sums fill 24 of the 32 registers.
const TOKENS: usize = 6;

pub(super) const FLOAT: [FloatFn; 5] = [
    float::<F32>,
    float::<F16>,
    float::<BF16>,
    float::<F8E4M3>,
    float::<F8E5M2>,
];

/// A plain float dtype.
trait Float {
    const BYTES: usize;
    /// The 16 elements at `at`; those outside `mask` are zero.
    ///
    /// # Safety
    /// The elements in `mask` are readable.
    unsafe fn load(at: *const u8, mask: u16) -> __m512;
}

struct F32;
struct F16;
struct BF16;

impl Float for F32 {
    const BYTES: usize = 4;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn load(at: *const u8, mask: u16) -> __m512 {
        // SAFETY: by the trait's contract.
        unsafe { _mm512_maskz_loadu_ps(mask, at.cast()) }
    }
}

impl Float for F16 {
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn load(at: *const u8, mask: u16) -> __m512 {
        // SAFETY: by the trait's contract.
        _mm512_cvtph_ps(unsafe { _mm256_maskz_loadu_epi16(mask, at.cast()) })
    }
}

impl Float for BF16 {
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn load(at: *const u8, mask: u16) -> __m512 {
        // SAFETY: by the trait's contract.
        let halves = unsafe { _mm256_maskz_loadu_epi16(mask, at.cast()) };
        let words = _mm512_cvtepu16_epi32(halves);
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
    }
}

impl Float for F8E4M3 {
    const BYTES: usize = 1;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn load(at: *const u8, mask: u16) -> __m512 {
        // SAFETY: by the trait's contract.
        let bits = _mm512_cvtepu8_epi32(unsafe { _mm_maskz_loadu_epi8(mask, at.cast()) });
        let magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7f));
        let sign = _mm512_slli_epi32::<24>(_mm512_xor_si512(bits, magnitude));
        // 2^(127 - 7) rebiases the exponent, also of subnormals; the greatest magnitude is NaN.
        let rebias = _mm512_castsi512_ps(_mm512_set1_epi32(247 << 23));
        let number = _mm512_castsi512_ps(_mm512_slli_epi32::<20>(magnitude));
        let nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f));
        let special = _mm512_mask_set1_epi32(sign, nan, -1);
        _mm512_or_ps(_mm512_mul_ps(number, rebias), _mm512_castsi512_ps(special))
    }
}

impl Float for F8E5M2 {
    const BYTES: usize = 1;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn load(at: *const u8, mask: u16) -> __m512 {
        // SAFETY: by the trait's contract.
        let bits = _mm256_cvtepu8_epi16(unsafe { _mm_maskz_loadu_epi8(mask, at.cast()) });
        _mm512_cvtph_ps(_mm256_slli_epi16::<8>(bits))
    }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float<W: Float>(call: &FloatCall) {
    for row in (0..call.rows).step_by(ROWS) {
        let rows = ROWS.min(call.rows - row);
        for t in (0..call.tokens).step_by(TOKENS) {
            let tokens = TOKENS.min(call.tokens - t);
            // SAFETY: rows `row..row + rows` and tokens `t..t + tokens` are inside the call's;
            // `tile` takes the rest of the contract.
            unsafe {
                let tile_call = FloatCall {
                    w: call.w.add(row * call.w_stride),
                    rows,
                    x: call.x.add(t * call.x_stride),
                    tokens,
                    y: call.y.add(t * call.y_stride + row),
                    ..*call
                };
                match tokens {
                    1 => tile::<W, 1>(&tile_call),
                    2 => tile::<W, 2>(&tile_call),
                    3 => tile::<W, 3>(&tile_call),
                    4 => tile::<W, 4>(&tile_call),
                    5 => tile::<W, 5>(&tile_call),
                    _ => tile::<W, TOKENS>(&tile_call),
                }
            }
        }
    }
}

/// # Safety
/// As `FloatFn`, with at most [`ROWS`] rows and `T` tokens.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn tile<W: Float, const T: usize>(call: &FloatCall) {
    // Rows after the last one are computed as copies of it and are not stored.
    let row_at: [usize; ROWS] = std::array::from_fn(|r| r.min(call.rows - 1) * call.w_stride);
    let mut sums = [[_mm512_setzero_ps(); ROWS]; T];
    let mut k = 0;
    while k < call.k {
        let mask = match call.k - k {
            rest @ 0..16 => (1 << rest) - 1,
            _ => u16::MAX,
        };
        // SAFETY: the mask excludes the elements after the end of the rows.
        unsafe {
            let mut w = [_mm512_setzero_ps(); ROWS];
            for r in 0..ROWS {
                w[r] = W::load(call.w.add(row_at[r] + k * W::BYTES), mask);
            }
            for t in 0..T {
                let x = _mm512_maskz_loadu_ps(mask, call.x.add(t * call.x_stride + k));
                for r in 0..ROWS {
                    sums[t][r] = _mm512_fmadd_ps(w[r], x, sums[t][r]);
                }
            }
        }
        k += 16;
    }
    let mask = (1u8 << call.rows) - 1;
    for (t, sums) in sums.iter().enumerate() {
        let mut total = add_lanes(sums);
        // SAFETY: the mask excludes the rows that do not exist.
        unsafe {
            let y = call.y.add(t * call.y_stride);
            if call.add {
                total = _mm_add_ps(total, _mm_maskz_loadu_ps(mask, y));
            }
            _mm_mask_storeu_ps(y, mask, total);
        }
    }
}

/// The sums of the lanes of each of four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn add_lanes(v: &[__m512; ROWS]) -> __m128 {
    let pair = |a, b| _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let (ab, cd) = (pair(v[0], v[1]), pair(v[2], v[3]));
    let low = _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd);
    let high = _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd);
    let quarters = _mm512_add_ps(low, high);
    let (first, second) = (
        _mm512_castps512_ps256(quarters),
        _mm512_extractf32x8_ps::<1>(quarters),
    );
    let halves = _mm256_add_ps(first, second);
    _mm_add_ps(
        _mm256_castps256_ps128(halves),
        _mm256_extractf128_ps::<1>(halves),
    )
}
