//! Activations as 8-bit codes, in the order that kernels read them.
//!
//! Tokens (rows of `x`) are taken in tiles of up to a level's `tile` tokens; only the last tile is
//! smaller. A tile of `T` tokens holds, per block of 32 elements:
//!
//! | bytes | content |
//! |---|---|
//! | `T * 32` u8 | codes plus 128, token after token |
//! | `T` f32 | scales `d` |
//! | `T` f32 | `d * sum(codes)` |
//! | `T` f32 | `d * sum(codes)` of the first half of the codes |
//!
//! So a kernel reads a tile from front to back. The codes are those of
//! `kovar_core::quant::activation::quantize_activations`, with a bias because one operand of the
//! x86 dot-product instructions is unsigned.

use crate::pack::BLOCK_LEN;

/// The bias that is added to a code.
pub(crate) const CODE_BIAS: i32 = 128;

/// Bytes per block and token.
pub(crate) const BLOCK_BYTES: usize = BLOCK_LEN + 12;

/// Byte offsets of one block's data in a tile.
#[derive(Clone, Copy)]
pub(crate) struct BlockOffsets {
    pub codes: usize,
    pub scales: usize,
    pub sums: usize,
    pub half_sums: usize,
}

/// The offsets of block `b` in a tile of `tokens`.
#[inline(always)]
pub(crate) fn block_offsets(b: usize, tokens: usize) -> BlockOffsets {
    let codes = b * tokens * BLOCK_BYTES;
    let scales = codes + tokens * BLOCK_LEN;
    BlockOffsets {
        codes,
        scales,
        sums: scales + tokens * 4,
        half_sums: scales + tokens * 8,
    }
}

/// The arguments of a level's quantiser: `tokens` rows of `blocks * 32` elements, `stride` elements
/// apart, are written to the tile at `out`.
#[derive(Clone, Copy)]
pub(crate) struct QuantizeCall {
    pub x: *const f32,
    pub stride: usize,
    pub tokens: usize,
    pub blocks: usize,
    pub out: *mut u8,
}

/// Quantises block by block, as the definition.
///
/// # Safety
/// `call.x` is readable for `tokens` rows and `call.out` writable for
/// `tokens * blocks * BLOCK_BYTES` bytes.
#[inline(always)]
pub(crate) unsafe fn quantize(call: &QuantizeCall) {
    for b in 0..call.blocks {
        let offsets = block_offsets(b, call.tokens);
        for t in 0..call.tokens {
            // SAFETY: token and block are inside the rows.
            let x = unsafe {
                let first = call.x.add(t * call.stride + b * BLOCK_LEN);
                &*first.cast::<[f32; BLOCK_LEN]>()
            };
            let mut codes = [0u8; BLOCK_LEN];
            let (d, sums) = quantize_block(x, &mut codes);
            // SAFETY: block `b` is inside the tile; f32s are written unaligned.
            unsafe {
                let codes_at = call.out.add(offsets.codes + t * BLOCK_LEN);
                codes_at.cast::<[u8; BLOCK_LEN]>().write(codes);
                write_scales(call.out, offsets, t, d, sums);
            }
        }
    }
}

/// Writes `d` and the scaled sums of a token, given the sums of the halves of its codes.
///
/// # Safety
/// The block at `offsets` is inside the tile at `out`.
#[inline(always)]
pub(crate) unsafe fn write_scales(
    out: *mut u8,
    offsets: BlockOffsets,
    t: usize,
    d: f32,
    sums: [i32; 2],
) {
    let [first, second] = sums;
    for (at, value) in [
        (offsets.scales, d),
        (offsets.sums, d * (first + second) as f32),
        (offsets.half_sums, d * first as f32),
    ] {
        // SAFETY: by this function's contract.
        unsafe { out.add(at + 4 * t).cast::<f32>().write_unaligned(value) };
    }
}

/// `d * sum(codes)` of a token: of a whole block if `S` is 1, of half `half` of it if `S` is 2.
///
/// # Safety
/// Token `t` is inside the tile at `x`, and so is the block at `offsets`.
#[inline(always)]
pub(crate) unsafe fn scaled_sum<const S: usize>(
    x: *const u8,
    offsets: BlockOffsets,
    t: usize,
    half: usize,
) -> f32 {
    // SAFETY: by this function's contract; f32s of a tile are read unaligned.
    let read = |at: usize| unsafe { x.add(at + 4 * t).cast::<f32>().read_unaligned() };
    match (S, half) {
        (1, _) => read(offsets.sums),
        (_, 0) => read(offsets.half_sums),
        _ => read(offsets.sums) - read(offsets.half_sums),
    }
}

#[inline(always)]
fn quantize_block(x: &[f32; BLOCK_LEN], codes: &mut [u8; BLOCK_LEN]) -> (f32, [i32; 2]) {
    // Magnitudes compare as integers; a NaN is larger than any number, so it wins.
    let largest = x
        .iter()
        .map(|v| v.to_bits() & 0x7fff_ffff)
        .max()
        .unwrap_or(0);
    let d = f32::from_bits(largest) / 127.0;
    if !(d > 0.0 && d.is_finite()) {
        codes.fill(CODE_BIAS as u8);
        return (d, [0; 2]);
    }
    let mut sums = [0; 2];
    let halves = codes.chunks_exact_mut(BLOCK_LEN / 2);
    for ((codes, x), sum) in halves.zip(x.chunks_exact(BLOCK_LEN / 2)).zip(&mut sums) {
        for (code, value) in codes.iter_mut().zip(x) {
            let q = (value / d).round_ties_even().clamp(-127.0, 127.0) as i32;
            *sum += q;
            *code = (q + CODE_BIAS) as u8;
        }
    }
    (d, sums)
}

#[cfg(test)]
mod tests {
    use kovar_core::quant::activation::quantize_activations;

    use super::*;
    use crate::product::Kernels;
    use crate::simd::SimdLevel;

    /// Blocks of many magnitudes: halves to round, quotients next to halves, subnormal and
    /// non-finite numbers, zeros.
    fn blocks() -> Vec<f32> {
        let mut state = 3u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let mut x = Vec::new();
        for exponent in -140..=127 {
            // Twice: a scale below the normal range is reached by steps.
            let scale = 2f32.powi(exponent / 2) * 2f32.powi(exponent - exponent / 2);
            let largest = 127.0 * scale;
            x.push(largest);
            x.extend((1..BLOCK_LEN).map(|_| (254.0 * next() - 127.0) * scale));
            x.push(largest);
            x.extend((1..BLOCK_LEN).map(|i| (i as f32 * 4.0 - 64.5) * scale));
            let odd = 1.7 * scale;
            x.push(127.0 * odd);
            for i in 1..BLOCK_LEN {
                let half = (i as f32 + 0.5) * odd;
                x.push(f32::from_bits(half.to_bits() + (i as u32 % 5) - 2));
            }
        }
        x.extend([0.0; BLOCK_LEN]);
        for special in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            -f32::MAX,
        ] {
            x.extend((0..BLOCK_LEN).map(|i| if i == 19 { special } else { i as f32 }));
        }
        x
    }

    #[test]
    fn every_level_gives_the_codes_of_the_definition() {
        let x = blocks();
        let n = x.len() / BLOCK_LEN;
        let (mut codes, mut scales, mut sums) = (vec![0; x.len()], vec![0.0; n], vec![0; n]);
        quantize_activations(&x, &mut codes, &mut scales, &mut sums).unwrap();
        for level in SimdLevel::available() {
            let kernels = Kernels::for_level(level).unwrap();
            for tokens in 1..=kernels.tile {
                let mut tile = vec![0u8; n * tokens * BLOCK_BYTES];
                let call = QuantizeCall {
                    x: x.as_ptr(),
                    // All tokens are the same row.
                    stride: 0,
                    tokens,
                    blocks: n,
                    out: tile.as_mut_ptr(),
                };
                // SAFETY: the rows and the tile have `n` blocks; the level is available.
                unsafe { (kernels.quantize)(&call) };
                let f32_at = |at: usize| {
                    f32::from_le_bytes([tile[at], tile[at + 1], tile[at + 2], tile[at + 3]])
                };
                for b in 0..n {
                    let offsets = block_offsets(b, tokens);
                    for t in 0..tokens {
                        let case = format!("{level} block {b} token {t} of {tokens}");
                        let actual = &tile[offsets.codes + t * BLOCK_LEN..][..BLOCK_LEN];
                        let expected = &codes[b * BLOCK_LEN..][..BLOCK_LEN];
                        for (a, e) in actual.iter().zip(expected) {
                            assert_eq!(i32::from(*a) - CODE_BIAS, i32::from(*e), "{case}");
                        }
                        let (d, sum) =
                            (f32_at(offsets.scales + 4 * t), f32_at(offsets.sums + 4 * t));
                        assert_eq!(d.is_nan(), scales[b].is_nan(), "{case}");
                        assert!(d.is_nan() || d.to_bits() == scales[b].to_bits(), "{case}");
                        let scaled = scales[b] * sums[b] as f32;
                        assert!(sum == scaled || sum.is_nan() && scaled.is_nan(), "{case}");
                        let half = expected[..BLOCK_LEN / 2].iter().map(|&e| i32::from(e));
                        let half: i32 = half.sum();
                        let (sum, scaled) =
                            (f32_at(offsets.half_sums + 4 * t), scales[b] * half as f32);
                        assert!(sum == scaled || sum.is_nan() && scaled.is_nan(), "{case}");
                    }
                }
            }
        }
    }
}
