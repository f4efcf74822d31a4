//! Kernels for AVX-512 with VNNI: one 64-byte vector is a line of codes (16 rows, 4 elements).

// Tiles are indexed by token and row, as in the formulas.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::activation::{self, CODE_BIAS, QuantizeCall};
use super::avx512_float;
use super::kernels::{FusedCall, Kernels};
use super::panel::{
    DecodeCall, LANES_BYTES, MAGIC, MAGIC_F32, PanelCall, QUADS, STARTS_AT, block_bytes, mins_at,
    per_kind, scales_at,
};
use crate::pack::{
    BLOCK_LEN, Codes, Format, GROUP_ROWS, LINE, SUPER_BLOCKS, Scales, Values, per_format,
};
use crate::simd::SimdLevel;

pub(super) static KERNELS: Kernels = Kernels {
    level: SimdLevel::Avx512Vnni,
    tile: 6,
    fused_tokens: 4,
    quantize,
    decode: per_format!(decode),
    panel: per_kind!(panel_product),
    fused: Some(per_format!(fused)),
    float: avx512_float::FLOAT,
    float_rows: 4,
};

/// # Safety
/// As `QuantizeFn`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn quantize(call: &QuantizeCall) {
    let bias = _mm512_set1_epi32(CODE_BIAS);
    for t in 0..call.tokens {
        for b in 0..call.blocks {
            let offsets = activation::block_offsets(b, call.tokens);
            // SAFETY: the block is inside the row of `x` and the tile.
            unsafe {
                let x = call.x.add(t * call.stride + b * BLOCK_LEN);
                let x = [_mm512_loadu_ps(x), _mm512_loadu_ps(x.add(16))];
                // Magnitudes compare as integers; a NaN is larger than any number.
                let largest = _mm512_max_epi32(
                    _mm512_castps_si512(_mm512_abs_ps(x[0])),
                    _mm512_castps_si512(_mm512_abs_ps(x[1])),
                );
                let d = f32::from_bits(_mm512_reduce_max_epi32(largest) as u32) / 127.0;
                let mut q = [_mm512_setzero_si512(); 2];
                if d > 0.0 && d.is_finite() {
                    q = round_quotients(x, d);
                }
                let sums = q.map(|q| _mm512_reduce_add_epi32(q));
                let codes = call.out.add(offsets.codes + t * BLOCK_LEN);
                for (i, q) in q.into_iter().enumerate() {
                    let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(q, bias));
                    _mm_storeu_si128(codes.add(16 * i).cast(), bytes);
                }
                activation::write_scales(call.out, offsets, t, d, sums);
            }
        }
    }
}

/// `x / d` rounded to integers, halves to even, and clamped to -127..=127.
///
/// Division is slow, so `x * (1 / d)` is rounded instead. For quotients up to 128 it is within
/// 2^-15 of `x / d`. All elements are divided only if one quotient is that close to a half, or if
/// `d` is so small that the reciprocal is inaccurate.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn round_quotients(x: [__m512; 2], d: f32) -> [__m512i; 2] {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    let reciprocal = _mm512_set1_ps(1.0 / d);
    let limit = _mm512_set1_ps(0.5 - 1.0 / 32768.0);
    let q = x.map(|x| _mm512_mul_ps(x, reciprocal));
    let rounded = q.map(|q| _mm512_roundscale_ps::<NEAREST>(q));
    let far = |i: usize| {
        let distance = _mm512_abs_ps(_mm512_sub_ps(q[i], rounded[i]));
        _mm512_cmp_ps_mask::<_CMP_LT_OQ>(distance, limit)
    };
    if far(0) & far(1) == u16::MAX && (f32::MIN_POSITIVE..1e37).contains(&d) {
        return rounded.map(|q| _mm512_cvtps_epi32(q));
    }
    let (low, high) = (_mm512_set1_ps(-127.0), _mm512_set1_ps(127.0));
    let d = _mm512_set1_ps(d);
    x.map(|x| {
        let q = _mm512_div_ps(x, d);
        _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(q, low), high))
    })
}

/// The eight lines of signed codes of a block.
///
/// # Safety
/// `codes` points to a block of `F`, aligned to 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn lines<F: Format>(codes: *const u8) -> [__m512i; QUADS] {
    // SAFETY: each kind of codes has the lines that are read for it.
    let line = |l: usize| unsafe { _mm512_load_si512(codes.add(l * LINE).cast()) };
    if F::CODES == Codes::Byte {
        return std::array::from_fn(line);
    }
    let mut out = [_mm512_setzero_si512(); QUADS];
    if matches!(F::CODES, Codes::Crumb | Codes::Crumb1) {
        let mask = _mm512_set1_epi8(0x03);
        for half in 0..2 {
            let crumbs = line(half);
            let out = &mut out[4 * half..4 * half + 4];
            out[0] = _mm512_and_si512(crumbs, mask);
            out[1] = _mm512_and_si512(_mm512_srli_epi16::<2>(crumbs), mask);
            out[2] = _mm512_and_si512(_mm512_srli_epi16::<4>(crumbs), mask);
            out[3] = _mm512_and_si512(_mm512_srli_epi16::<6>(crumbs), mask);
        }
    } else {
        let mask = _mm512_set1_epi8(0x0f);
        for l in 0..4 {
            let pairs = line(l);
            out[l] = _mm512_and_si512(pairs, mask);
            out[l + 4] = _mm512_and_si512(_mm512_srli_epi16::<4>(pairs), mask);
        }
    }
    match F::CODES {
        Codes::Crumb1 => {
            let bits = line(2);
            let at = _mm512_set1_epi8(0x04);
            out[0] = or_masked(out[0], _mm512_slli_epi16::<2>(bits), at);
            out[1] = or_masked(out[1], _mm512_slli_epi16::<1>(bits), at);
            out[2] = or_masked(out[2], bits, at);
            out[3] = or_masked(out[3], _mm512_srli_epi16::<1>(bits), at);
            out[4] = or_masked(out[4], _mm512_srli_epi16::<2>(bits), at);
            out[5] = or_masked(out[5], _mm512_srli_epi16::<3>(bits), at);
            out[6] = or_masked(out[6], _mm512_srli_epi16::<4>(bits), at);
            out[7] = or_masked(out[7], _mm512_srli_epi16::<5>(bits), at);
        }
        Codes::Nibble1 => {
            let bits = line(4);
            let at = _mm512_set1_epi8(0x10);
            out[0] = or_masked(out[0], _mm512_slli_epi16::<4>(bits), at);
            out[1] = or_masked(out[1], _mm512_slli_epi16::<3>(bits), at);
            out[2] = or_masked(out[2], _mm512_slli_epi16::<2>(bits), at);
            out[3] = or_masked(out[3], _mm512_slli_epi16::<1>(bits), at);
            out[4] = or_masked(out[4], bits, at);
            out[5] = or_masked(out[5], _mm512_srli_epi16::<1>(bits), at);
            out[6] = or_masked(out[6], _mm512_srli_epi16::<2>(bits), at);
            out[7] = or_masked(out[7], _mm512_srli_epi16::<3>(bits), at);
        }
        Codes::Nibble2 => {
            let at = _mm512_set1_epi8(0x30);
            for half in 0..2 {
                let bits = line(4 + half);
                let out = &mut out[4 * half..4 * half + 4];
                out[0] = or_masked(out[0], _mm512_slli_epi16::<4>(bits), at);
                out[1] = or_masked(out[1], _mm512_slli_epi16::<2>(bits), at);
                out[2] = or_masked(out[2], bits, at);
                out[3] = or_masked(out[3], _mm512_srli_epi16::<2>(bits), at);
            }
        }
        Codes::Crumb | Codes::Nibble | Codes::Byte => {}
    }
    match F::VALUES {
        Values::Less(0) => {}
        Values::Less(offset) => {
            let offset = _mm512_set1_epi8(offset as i8);
            for line in &mut out {
                *line = _mm512_sub_epi8(*line, offset);
            }
        }
        Values::Table(levels) => {
            // SAFETY: the table has 16 bytes.
            let levels = unsafe { _mm_loadu_si128(levels.as_ptr().cast()) };
            let levels = _mm512_broadcast_i32x4(levels);
            for line in &mut out {
                *line = _mm512_shuffle_epi8(levels, *line);
            }
        }
    }
    out
}

/// `a | (b & mask)`.
#[inline]
#[target_feature(enable = "avx512f")]
fn or_masked(a: __m512i, b: __m512i, mask: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xf8>(a, b, mask)
}

/// The scales and minima of a block, or of its halves if they have their own; 0 if there are none.
///
/// # Safety
/// `scales` are a group's scales of at least `b + 1` blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn scales<F: Format>(scales: *const u8, b: usize) -> ([__m512; 2], [__m512; 2]) {
    let none = _mm512_setzero_ps();
    let (unit, sub) = F::SCALES.unit_of(b);
    // SAFETY: a unit holds the vectors of its kind of scales.
    unsafe {
        let unit = scales.add(unit * F::SCALES.unit_bytes());
        let bytes = |at: usize| _mm_loadu_si128(unit.add(at * GROUP_ROWS).cast());
        let unsigned = |at: usize| _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes(at)));
        let signed = |at: usize| _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(at)));
        let d = || halves(unit);
        let dmin = || halves(unit.add(2 * GROUP_ROWS));
        match F::SCALES {
            Scales::D | Scales::D256 => ([d(), none], [none; 2]),
            Scales::DM => ([d(), none], [dmin(), none]),
            Scales::E8M0 => {
                // The scales of exponents above 1 are normal numbers, those of 0 and 1 subnormal.
                let e = _mm512_cvtepu8_epi32(bytes(0));
                let normal = _mm512_slli_epi32::<23>(_mm512_sub_epi32(e, _mm512_set1_epi32(1)));
                let subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x0020_0000), e);
                let is_normal = _mm512_cmpgt_epi32_mask(e, _mm512_set1_epi32(1));
                let bits = _mm512_mask_mov_epi32(subnormal, is_normal, normal);
                ([_mm512_castsi512_ps(bits), none], [none; 2])
            }
            Scales::K2 => {
                let (d, minus_dmin) = (d(), _mm512_sub_ps(none, dmin()));
                let parts = [0, 1].map(|half| _mm512_cvtepu8_epi32(bytes(4 + 2 * sub + half)));
                let low = _mm512_set1_epi32(0x0f);
                (
                    parts.map(|part| {
                        _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(part, low)))
                    }),
                    parts.map(|part| {
                        let min = _mm512_cvtepi32_ps(_mm512_srli_epi32::<4>(part));
                        _mm512_mul_ps(minus_dmin, min)
                    }),
                )
            }
            Scales::K => {
                let minus_dmin = _mm512_sub_ps(none, dmin());
                let min = _mm512_mul_ps(minus_dmin, unsigned(4 + SUPER_BLOCKS + sub));
                ([_mm512_mul_ps(d(), unsigned(4 + sub)), none], [min, none])
            }
            Scales::K6 => {
                let d = d();
                let scale = |half: usize| _mm512_mul_ps(d, signed(2 + 2 * sub + half));
                ([scale(0), scale(1)], [none; 2])
            }
            Scales::XS => ([_mm512_mul_ps(d(), signed(2 + sub)), none], [none; 2]),
        }
    }
}

/// # Safety
/// `at` is readable for 16 f16.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn halves(at: *const u8) -> __m512 {
    // SAFETY: by this function's contract.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(at.cast()) })
}

/// `sum(w)` of the lines, times the bias of the activations.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn biased_sums(lines: &[__m512i]) -> __m512i {
    let bias = _mm512_set1_epi8(CODE_BIAS as u8 as i8);
    let mut sums = _mm512_setzero_si512();
    for line in lines {
        sums = _mm512_dpbusd_epi32(sums, bias, *line);
    }
    sums
}

/// # Safety
/// As `DecodeFn`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn decode<F: Format>(call: &DecodeCall) {
    let magic = _mm512_set1_epi32(MAGIC);
    for b in 0..call.blocks {
        // SAFETY: block `b` is inside the group and the panel.
        unsafe {
            let lines = lines::<F>(call.codes.add(b * F::CODES.block_bytes()));
            let out = call.out.add(b * call.step);
            for (q, line) in lines.iter().enumerate() {
                _mm512_store_si512(out.add(q * LINE).cast(), *line);
            }
            for (i, half) in lines.chunks_exact(QUADS / F::SUB_SCALES).enumerate() {
                let start = _mm512_sub_epi32(magic, biased_sums(half));
                _mm512_store_si512(out.add(STARTS_AT + i * LANES_BYTES).cast(), start);
            }
            let (scales, mins) = scales::<F>(call.scales, b);
            for half in 0..F::SUB_SCALES {
                let at = out.add(half * LANES_BYTES);
                _mm512_store_ps(at.add(scales_at(F::SUB_SCALES)).cast(), scales[half]);
                if F::MIN {
                    _mm512_store_ps(at.add(mins_at(F::SUB_SCALES)).cast(), mins[half]);
                }
            }
        }
    }
}

/// # Safety
/// As `PanelFn`.
unsafe fn panel_product<const S: usize, const MIN: bool>(call: &PanelCall) {
    // SAFETY: `call` keeps `PanelFn`'s contract, which is that of each instance for its number
    // of groups and tokens.
    unsafe {
        match (call.groups, call.tokens) {
            (1, 1) => panel_tile::<S, MIN, 1, 1>(call),
            (1, 2) => panel_tile::<S, MIN, 1, 2>(call),
            (1, 3) => panel_tile::<S, MIN, 1, 3>(call),
            (1, 4) => panel_tile::<S, MIN, 1, 4>(call),
            (1, 5) => panel_tile::<S, MIN, 1, 5>(call),
            (1, 6) => panel_tile::<S, MIN, 1, 6>(call),
            (2, 1) => panel_tile::<S, MIN, 2, 1>(call),
            (2, 2) => panel_tile::<S, MIN, 2, 2>(call),
            (2, 3) => panel_tile::<S, MIN, 2, 3>(call),
            (2, 4) => panel_tile::<S, MIN, 2, 4>(call),
            (2, 5) => panel_tile::<S, MIN, 2, 5>(call),
            (2, 6) => panel_tile::<S, MIN, 2, 6>(call),
            _ => {}
        }
    }
}

/// # Safety
/// As `PanelFn`, with `R` groups and `T` tokens.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn panel_tile<const S: usize, const MIN: bool, const R: usize, const T: usize>(
    call: &PanelCall,
) {
    let step = block_bytes(S, MIN);
    let minus_magic = _mm512_set1_ps(-MAGIC_F32);
    let mut sums = [[_mm512_setzero_ps(); R]; T];
    for b in 0..call.blocks {
        let offsets = activation::block_offsets(b, T);
        // SAFETY: block `b` is inside the panel and the tile.
        unsafe {
            let panel = call.panel.add(b * R * step);
            let codes = call.x.add(offsets.codes);
            let scales = call.x.add(offsets.scales).cast::<f32>();
            for half in 0..S {
                let mut dots = [[_mm512_setzero_si512(); R]; T];
                for r in 0..R {
                    let start = panel.add(r * step + STARTS_AT + half * LANES_BYTES);
                    let start = _mm512_load_si512(start.cast());
                    for dots in &mut dots {
                        dots[r] = start;
                    }
                }
                for q in half * QUADS / S..(half + 1) * QUADS / S {
                    let mut w = [_mm512_setzero_si512(); R];
                    for r in 0..R {
                        w[r] = _mm512_load_si512(panel.add(r * step + q * LINE).cast());
                    }
                    for t in 0..T {
                        let x = quad(codes.add(t * BLOCK_LEN + 4 * q));
                        for r in 0..R {
                            dots[t][r] = _mm512_dpbusd_epi32(dots[t][r], x, w[r]);
                        }
                    }
                }
                for r in 0..R {
                    let scale = panel.add(r * step + scales_at(S) + half * LANES_BYTES);
                    let scale = _mm512_load_ps(scale.cast());
                    let shift = _mm512_mul_ps(scale, minus_magic);
                    for t in 0..T {
                        let dot = _mm512_castsi512_ps(dots[t][r]);
                        let dot = _mm512_fmadd_ps(dot, scale, shift);
                        let d = _mm512_set1_ps(scales.add(t).read_unaligned());
                        sums[t][r] = _mm512_fmadd_ps(dot, d, sums[t][r]);
                    }
                }
            }
            if MIN {
                for half in 0..S {
                    let mut min = [_mm512_setzero_ps(); R];
                    for r in 0..R {
                        let at = panel.add(r * step + mins_at(S) + half * LANES_BYTES);
                        min[r] = _mm512_load_ps(at.cast());
                    }
                    for t in 0..T {
                        let sum = activation::scaled_sum::<S>(call.x, offsets, t, half);
                        let sum = _mm512_set1_ps(sum);
                        for r in 0..R {
                            sums[t][r] = _mm512_fmadd_ps(min[r], sum, sums[t][r]);
                        }
                    }
                }
            }
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        for (r, sum) in sums.iter().enumerate() {
            let first = r * GROUP_ROWS;
            // SAFETY: `y` is writable for the first `rows` rows of each token.
            unsafe {
                let y = call.y.add(t * call.y_stride + first);
                store_rows(y, call.rows.saturating_sub(first), *sum);
            }
        }
    }
}

/// Four codes of a token, for all rows.
///
/// # Safety
/// `at` is readable for four bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn quad(at: *const u8) -> __m512i {
    // SAFETY: by this function's contract.
    _mm512_set1_epi32(unsafe { at.cast::<i32>().read_unaligned() })
}

/// Stores the first `rows` (at most 16) lanes.
///
/// # Safety
/// `y` is writable for `min(rows, 16)` elements.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_rows(y: *mut f32, rows: usize, values: __m512) {
    let mask = if rows >= GROUP_ROWS {
        u16::MAX
    } else {
        (1 << rows) - 1
    };
    // SAFETY: the mask leaves out the lanes beyond `rows`.
    unsafe { _mm512_mask_storeu_ps(y, mask, values) };
}

/// # Safety
/// As `FusedFn`.
unsafe fn fused<F: Format>(call: &FusedCall) {
    // SAFETY: `call` keeps `FusedFn`'s contract.
    unsafe {
        match call.tokens {
            1 => fused_tile::<F, 1>(call),
            2 => fused_tile::<F, 2>(call),
            3 => fused_tile::<F, 3>(call),
            4 => fused_tile::<F, 4>(call),
            _ => {}
        }
    }
}

/// The distance in bytes by which codes are prefetched: about the data that a core has in flight.
const PREFETCH: usize = 16384;

/// # Safety
/// As `FusedFn`, with `T` tokens.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn fused_tile<F: Format, const T: usize>(call: &FusedCall) {
    let magic = _mm512_set1_epi32(MAGIC);
    let minus_magic = _mm512_set1_ps(-MAGIC_F32);
    let mut sums = [_mm512_setzero_ps(); T];
    for b in 0..call.blocks {
        let offsets = activation::block_offsets(b, T);
        // SAFETY: block `b` is inside the group and the tile; a prefetch may have any address.
        unsafe {
            let block = call.codes.add(b * F::CODES.block_bytes());
            for l in 0..F::CODES.block_bytes() / LINE {
                _mm_prefetch::<_MM_HINT_T1>(block.wrapping_add(PREFETCH + l * LINE).cast());
            }
            let lines = lines::<F>(block);
            let (scales, mins) = scales::<F>(call.scales, b);
            let codes = call.x.add(offsets.codes);
            let x_scales = call.x.add(offsets.scales).cast::<f32>();
            let quads = QUADS / F::SUB_SCALES;
            for (half, lines) in lines.chunks_exact(quads).enumerate() {
                let bias = biased_sums(lines);
                let shift = _mm512_mul_ps(scales[half], minus_magic);
                for t in 0..T {
                    let mut dot = magic;
                    for (q, line) in lines.iter().enumerate() {
                        let x = quad(codes.add(t * BLOCK_LEN + 4 * (half * quads + q)));
                        dot = _mm512_dpbusd_epi32(dot, x, *line);
                    }
                    let dot = _mm512_castsi512_ps(_mm512_sub_epi32(dot, bias));
                    let dot = _mm512_fmadd_ps(dot, scales[half], shift);
                    let d = _mm512_set1_ps(x_scales.add(t).read_unaligned());
                    sums[t] = _mm512_fmadd_ps(dot, d, sums[t]);
                }
            }
            if F::MIN {
                for half in 0..F::SUB_SCALES {
                    for t in 0..T {
                        let sum = match F::SUB_SCALES {
                            1 => activation::scaled_sum::<1>(call.x, offsets, t, half),
                            _ => activation::scaled_sum::<2>(call.x, offsets, t, half),
                        };
                        sums[t] = _mm512_fmadd_ps(mins[half], _mm512_set1_ps(sum), sums[t]);
                    }
                }
            }
        }
    }
    for (t, sum) in sums.iter().enumerate() {
        // SAFETY: `y` is writable for the first `rows` rows of each token.
        unsafe { store_rows(call.y.add(t * call.y_stride), call.rows, *sum) };
    }
}
