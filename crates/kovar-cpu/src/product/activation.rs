//! Activations as 8-bit codes, in the order in which the kernels read them.
//!
//! Tokens (rows of `x`) are taken in tiles of up to a level's `tile` tokens; only the last tile is
//! smaller. A tile of `T` tokens holds, per block of 32 elements:
//!
//! | bytes | content |
//! |---|---|
//! | `T * 32` u8 | codes plus 128, token after token |
//! | `T` f32 | scales `d` |
//! | `T` f32 | `d * sum(codes)` |
//!
//! so a kernel reads it front to back. The codes are those of
//! `kovar_core::quant::activation::quantize_activations`, biased because the x86 dot-product
//! instructions want one unsigned operand.

use crate::pack::BLOCK_LEN;

/// What is added to a code.
pub(crate) const CODE_BIAS: i32 = 128;

/// Bytes per block and token.
pub(crate) const BLOCK_BYTES: usize = BLOCK_LEN + 8;

/// The parts of one block of a tile.
#[derive(Clone, Copy)]
pub(crate) struct BlockParts {
    pub codes: usize,
    pub scales: usize,
    pub sums: usize,
}

/// Byte offsets of the parts of block `b` in a tile of `tokens`.
#[inline(always)]
pub(crate) fn parts(b: usize, tokens: usize) -> BlockParts {
    let codes = b * tokens * BLOCK_BYTES;
    let scales = codes + tokens * BLOCK_LEN;
    BlockParts {
        codes,
        scales,
        sums: scales + tokens * 4,
    }
}

/// What a level's quantiser is called with: `tokens` rows of `blocks * 32` elements, `stride`
/// elements apart, to the tile at `out`.
#[derive(Clone, Copy)]
pub(crate) struct QuantizeCall {
    pub x: *const f32,
    pub stride: usize,
    pub tokens: usize,
    pub blocks: usize,
    pub out: *mut u8,
}

/// The definition, block by block.
///
/// # Safety
/// `call.x` is readable for `tokens` rows and `call.out` writable for
/// `tokens * blocks * BLOCK_BYTES` bytes.
#[inline(always)]
pub(crate) unsafe fn quantize(call: &QuantizeCall) {
    for b in 0..call.blocks {
        let parts = parts(b, call.tokens);
        for t in 0..call.tokens {
            // SAFETY: token and block are inside the rows.
            let x = unsafe {
                let first = call.x.add(t * call.stride + b * BLOCK_LEN);
                &*first.cast::<[f32; BLOCK_LEN]>()
            };
            let mut codes = [0u8; BLOCK_LEN];
            let (d, sum) = quantize_block(x, &mut codes);
            // SAFETY: the parts of block `b` are inside the tile; f32s are written unaligned.
            unsafe {
                let codes_at = call.out.add(parts.codes + t * BLOCK_LEN);
                codes_at.cast::<[u8; BLOCK_LEN]>().write(codes);
                write_scales(call.out, parts, t, d, sum);
            }
        }
    }
}

/// Writes `d` and `d * sum` of a token.
///
/// # Safety
/// The parts are inside the tile at `out`.
#[inline(always)]
pub(crate) unsafe fn write_scales(out: *mut u8, parts: BlockParts, t: usize, d: f32, sum: i32) {
    // SAFETY: by this function's contract.
    unsafe {
        out.add(parts.scales + 4 * t)
            .cast::<f32>()
            .write_unaligned(d);
        out.add(parts.sums + 4 * t)
            .cast::<f32>()
            .write_unaligned(d * sum as f32);
    }
}

#[inline(always)]
fn quantize_block(x: &[f32; BLOCK_LEN], codes: &mut [u8; BLOCK_LEN]) -> (f32, i32) {
    // Magnitudes compare as integers; a NaN is larger than any number, so it wins.
    let largest = x
        .iter()
        .map(|v| v.to_bits() & 0x7fff_ffff)
        .max()
        .unwrap_or(0);
    let d = f32::from_bits(largest) / 127.0;
    if !(d > 0.0 && d.is_finite()) {
        codes.fill(CODE_BIAS as u8);
        return (d, 0);
    }
    let mut sum = 0;
    for (code, value) in codes.iter_mut().zip(x) {
        let q = (value / d).round_ties_even().clamp(-127.0, 127.0) as i32;
        sum += q;
        *code = (q + CODE_BIAS) as u8;
    }
    (d, sum)
}
