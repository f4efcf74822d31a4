//! Kernels for AVX2 with FMA and F16C: a line of codes is two 32-byte vectors of 8 rows each.

// Tiles are indexed by token and row, as in the formulas.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use kovar_core::plain::{F8E4M3, F8E5M2};

use super::activation::{self, CODE_BIAS, QuantizeCall};
use super::kernels::{FloatCall, Kernels};
use super::panel::{
    self, Decode, DecodeCall, LANES_BYTES, MAGIC, MAGIC_F32, PanelCall, QUADS, STARTS_AT,
    block_bytes, mins_at, scales_at,
};
use crate::pack::{BLOCK_LEN, Format, GROUP_ROWS, LINE, per_format};
use crate::simd::SimdLevel;

/// Rows of a vector.
const LANES: usize = GROUP_ROWS / 2;

pub(super) static KERNELS: Kernels = Kernels {
    level: SimdLevel::Avx2,
    tile: 4,
    fused_tokens: 0,
    quantize,
    decode: per_format!(decode),
    panel: [
        panel_product::<1, false, false>,
        panel_product::<1, false, true>,
        panel_product::<1, true, false>,
        panel_product::<2, false, false>,
        panel_product::<2, true, false>,
    ],
    fused: None,
    float: [
        float::<F32>,
        float::<F16>,
        float::<BF16>,
        float::<F8E4M3>,
        float::<F8E5M2>,
    ],
    float_rows: 2,
};

/// # Safety
/// As `QuantizeFn`.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn quantize(call: &QuantizeCall) {
    // SAFETY: by this function's contract.
    unsafe { activation::quantize(call) }
}

/// # Safety
/// As `DecodeFn`.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn decode<F: Format>(call: &DecodeCall) {
    // SAFETY: by this function's contract.
    unsafe { Avx2::decode::<F>(call) }
}

struct Avx2;

impl Decode for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn look_up(line: &mut [i8; LINE], levels: &'static [i8; 16]) {
        let (halves, _) = line.as_chunks_mut::<32>();
        // SAFETY: the table has 16 bytes and each half of the line 32.
        unsafe {
            let levels = _mm_loadu_si128(levels.as_ptr().cast());
            let levels = _mm256_broadcastsi128_si256(levels);
            for half in halves {
                let codes = _mm256_loadu_si256(half.as_ptr().cast());
                let numbers = _mm256_shuffle_epi8(levels, codes);
                _mm256_storeu_si256(half.as_mut_ptr().cast(), numbers);
            }
        }
    }
}

/// # Safety
/// As `PanelFn`.
unsafe fn panel_product<const S: usize, const MIN: bool, const WIDE: bool>(call: &PanelCall) {
    for group in 0..call.groups {
        for half in 0..2 {
            // SAFETY: `call` keeps `PanelFn`'s contract.
            unsafe {
                match call.tokens {
                    1 => half_tile::<S, MIN, WIDE, 1>(call, group, half),
                    2 => half_tile::<S, MIN, WIDE, 2>(call, group, half),
                    3 => half_tile::<S, MIN, WIDE, 3>(call, group, half),
                    4 => half_tile::<S, MIN, WIDE, 4>(call, group, half),
                    _ => {}
                }
            }
        }
    }
}

/// Eight rows of a panel: half `side` of group `group`.
///
/// # Safety
/// As `PanelFn`, with `T` tokens.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn half_tile<const S: usize, const MIN: bool, const WIDE: bool, const T: usize>(
    call: &PanelCall,
    group: usize,
    side: usize,
) {
    let step = block_bytes(S, MIN);
    let minus_magic = _mm256_set1_ps(-MAGIC_F32);
    let ones = _mm256_set1_epi16(1);
    let bias = _mm256_set1_epi8(CODE_BIAS as u8 as i8);
    let lanes_at = side * LANES * 4;
    let mut sums = [_mm256_setzero_ps(); T];
    for b in 0..call.blocks {
        let offsets = activation::block_offsets(b, T);
        // SAFETY: block `b` is inside the panel and the tile.
        unsafe {
            let panel = call.panel.add((b * call.groups + group) * step);
            let codes = call.x.add(offsets.codes);
            let scales = call.x.add(offsets.scales).cast::<f32>();
            for half in 0..S {
                // Wide codes are multiplied without the activations' bias.
                let start = if WIDE {
                    _mm256_set1_epi32(MAGIC)
                } else {
                    _mm256_load_si256(panel.add(STARTS_AT + half * LANES_BYTES + lanes_at).cast())
                };
                let mut dots = [start; T];
                for q in half * QUADS / S..(half + 1) * QUADS / S {
                    let w = _mm256_load_si256(panel.add(q * LINE + side * LINE / 2).cast());
                    let magnitude = _mm256_abs_epi8(w);
                    for (t, dot) in dots.iter_mut().enumerate() {
                        let x = codes.add(t * BLOCK_LEN + 4 * q);
                        let x = _mm256_set1_epi32(x.cast::<i32>().read_unaligned());
                        // 255 * 63 * 2 and 128 * 127 * 2 are below 2^15: no pair sum saturates.
                        let pairs = if WIDE {
                            let x = _mm256_sign_epi8(_mm256_xor_si256(x, bias), w);
                            _mm256_maddubs_epi16(magnitude, x)
                        } else {
                            _mm256_maddubs_epi16(x, w)
                        };
                        *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(pairs, ones));
                    }
                }
                let scale = panel.add(scales_at(S) + half * LANES_BYTES + lanes_at);
                let scale = _mm256_load_ps(scale.cast());
                let shift = _mm256_mul_ps(scale, minus_magic);
                for t in 0..T {
                    let dot = _mm256_fmadd_ps(_mm256_castsi256_ps(dots[t]), scale, shift);
                    let d = _mm256_set1_ps(scales.add(t).read_unaligned());
                    sums[t] = _mm256_fmadd_ps(dot, d, sums[t]);
                }
            }
            if MIN {
                for half in 0..S {
                    let min = panel.add(mins_at(S) + half * LANES_BYTES + lanes_at);
                    let min = _mm256_load_ps(min.cast());
                    for (t, total) in sums.iter_mut().enumerate() {
                        let sum = activation::scaled_sum::<S>(call.x, offsets, t, half);
                        *total = _mm256_fmadd_ps(min, _mm256_set1_ps(sum), *total);
                    }
                }
            }
        }
    }
    let first = group * GROUP_ROWS + side * LANES;
    let rows = LANES.min(call.rows.saturating_sub(first));
    for (t, sum) in sums.iter().enumerate() {
        let mut lanes = [0.0f32; LANES];
        // SAFETY: `y` is writable for the first `rows` rows of each token.
        unsafe {
            _mm256_storeu_ps(lanes.as_mut_ptr(), *sum);
            let y = call.y.add(t * call.y_stride + first.min(call.rows));
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), y, rows);
        }
    }
}

/// A plain float dtype.
trait Float {
    const BYTES: usize;
    /// The eight elements at `at`.
    ///
    /// # Safety
    /// They are readable.
    unsafe fn load(at: *const u8) -> __m256;
    /// The element at `at`.
    ///
    /// # Safety
    /// It is readable.
    unsafe fn load_one(at: *const u8) -> f32;
}

struct F32;
struct F16;
struct BF16;

impl Float for F32 {
    const BYTES: usize = 4;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: by the trait's contract.
        unsafe { _mm256_loadu_ps(at.cast()) }
    }
    #[inline]
    unsafe fn load_one(at: *const u8) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe { at.cast::<f32>().read_unaligned() }
    }
}

impl Float for F16 {
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: by the trait's contract.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(at.cast()) })
    }
    #[inline]
    unsafe fn load_one(at: *const u8) -> f32 {
        // SAFETY: by the trait's contract.
        panel::half_to_f32(unsafe { at.cast::<u16>().read_unaligned() })
    }
}

impl Float for BF16 {
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: by the trait's contract.
        let words = _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(at.cast()) });
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
    }
    #[inline]
    unsafe fn load_one(at: *const u8) -> f32 {
        // SAFETY: by the trait's contract.
        f32::from_bits(u32::from(unsafe { at.cast::<u16>().read_unaligned() }) << 16)
    }
}

impl Float for F8E4M3 {
    const BYTES: usize = 1;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: by the trait's contract.
        let bits = _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(at.cast()) });
        let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f));
        let sign = _mm256_slli_epi32::<24>(_mm256_xor_si256(bits, magnitude));
        // 2^(127 - 7) rebiases the exponent, also of subnormals; the greatest magnitude is NaN.
        let rebias = _mm256_castsi256_ps(_mm256_set1_epi32(247 << 23));
        let number = _mm256_castsi256_ps(_mm256_slli_epi32::<20>(magnitude));
        let nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f));
        let special = _mm256_castsi256_ps(_mm256_or_si256(sign, nan));
        _mm256_or_ps(_mm256_mul_ps(number, rebias), special)
    }
    #[inline]
    unsafe fn load_one(at: *const u8) -> f32 {
        // SAFETY: by the trait's contract.
        F8E4M3(unsafe { *at }).to_f32()
    }
}

impl Float for F8E5M2 {
    const BYTES: usize = 1;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: by the trait's contract.
        let bits = _mm_cvtepu8_epi16(unsafe { _mm_loadl_epi64(at.cast()) });
        _mm256_cvtph_ps(_mm_slli_epi16::<8>(bits))
    }
    #[inline]
    unsafe fn load_one(at: *const u8) -> f32 {
        // SAFETY: by the trait's contract.
        F8E5M2(unsafe { *at }).to_f32()
    }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float<W: Float>(call: &FloatCall) {
    let mut row = 0;
    while row < call.rows {
        let rows = if call.rows - row >= 2 { 2 } else { 1 };
        let mut t = 0;
        while t < call.tokens {
            let tokens = if call.tokens - t >= 4 { 4 } else { 1 };
            // SAFETY: rows `row..row + rows` and tokens `t..t + tokens` are inside the call's.
            unsafe {
                let tile_call = FloatCall {
                    w: call.w.add(row * call.w_stride),
                    x: call.x.add(t * call.x_stride),
                    y: call.y.add(t * call.y_stride + row),
                    ..*call
                };
                match (rows, tokens) {
                    (2, 4) => float_tile::<W, 2, 4>(&tile_call),
                    (2, _) => float_tile::<W, 2, 1>(&tile_call),
                    (_, 4) => float_tile::<W, 1, 4>(&tile_call),
                    _ => float_tile::<W, 1, 1>(&tile_call),
                }
            }
            t += tokens;
        }
        row += rows;
    }
}

/// # Safety
/// As `FloatFn`, with `R` rows and `T` tokens.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn float_tile<W: Float, const R: usize, const T: usize>(call: &FloatCall) {
    let mut sums = [[_mm256_setzero_ps(); R]; T];
    let whole = call.k - call.k % LANES;
    for k in (0..whole).step_by(LANES) {
        // SAFETY: eight elements from `k` are inside the rows.
        unsafe {
            let mut w = [_mm256_setzero_ps(); R];
            for r in 0..R {
                w[r] = W::load(call.w.add(r * call.w_stride + k * W::BYTES));
            }
            for t in 0..T {
                let x = _mm256_loadu_ps(call.x.add(t * call.x_stride + k));
                for r in 0..R {
                    sums[t][r] = _mm256_fmadd_ps(w[r], x, sums[t][r]);
                }
            }
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        for (r, sum) in sums.iter().enumerate() {
            let mut lanes = [0.0f32; LANES];
            // SAFETY: the rest of the rows is readable, `y` has an element per row and token.
            unsafe {
                _mm256_storeu_ps(lanes.as_mut_ptr(), *sum);
                let mut total: f32 = lanes.iter().sum();
                for k in whole..call.k {
                    let w = W::load_one(call.w.add(r * call.w_stride + k * W::BYTES));
                    total += w * *call.x.add(t * call.x_stride + k);
                }
                let y = call.y.add(t * call.y_stride + r);
                y.write(if call.add { *y + total } else { total });
            }
        }
    }
}
