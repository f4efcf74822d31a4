//! Kernels for AArch64 with the dot-product instructions: a line of codes is four 16-byte vectors
//! of 4 rows each. The other kernels are the portable ones, which the compiler vectorises.

// Tiles are indexed by token and row, as in the formulas.
#![allow(clippy::needless_range_loop)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::activation::{self, CODE_BIAS};
use super::kernels::Kernels;
use super::panel::{
    Decode, LANES_BYTES, MAGIC, MAGIC_F32, PanelCall, QUADS, block_bytes, mins_at, per_kind,
    scales_at,
};
use super::portable::FLOAT;
use crate::pack::{BLOCK_LEN, GROUP_ROWS, LINE, per_format};
use crate::simd::SimdLevel;

/// Rows of a vector.
const LANES: usize = 4;

/// Vectors of rows that a tile takes at a time: with four tokens their sums fill 16 of the 32
/// registers.
const VECTORS: usize = 2;

pub(super) static KERNELS: Kernels = Kernels {
    level: SimdLevel::Neon,
    tile: 4,
    fused_tokens: 0,
    quantize: activation::quantize,
    decode: per_format!(Neon::decode),
    panel: per_kind!(panel_product),
    fused: None,
    float: FLOAT,
    float_rows: 4,
};

struct Neon;

impl Decode for Neon {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn look_up(line: &mut [i8; LINE], levels: &'static [i8; 16]) {
        let (quarters, _) = line.as_chunks_mut::<16>();
        // SAFETY: the table and each quarter of the line have 16 bytes.
        unsafe {
            let levels = vld1q_s8(levels.as_ptr());
            for quarter in quarters {
                let codes = vreinterpretq_u8_s8(vld1q_s8(quarter.as_ptr()));
                vst1q_s8(quarter.as_mut_ptr(), vqtbl1q_s8(levels, codes));
            }
        }
    }
}

/// # Safety
/// As `PanelFn`.
unsafe fn panel_product<const S: usize, const MIN: bool>(call: &PanelCall) {
    for group in 0..call.groups {
        for first in (0..GROUP_ROWS).step_by(VECTORS * LANES) {
            // SAFETY: `call` keeps `PanelFn`'s contract.
            unsafe {
                match call.tokens {
                    1 => tile::<S, MIN, 1>(call, group, first),
                    2 => tile::<S, MIN, 2>(call, group, first),
                    3 => tile::<S, MIN, 3>(call, group, first),
                    4 => tile::<S, MIN, 4>(call, group, first),
                    _ => {}
                }
            }
        }
    }
}

/// `sums + w . x` for four rows and quad `LANE` of `x`. The standard library's intrinsic for the
/// instruction is not stable.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot<const LANE: u32>(mut sums: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these registers only; this function has the
    // feature that it needs.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {w:v}.16b, {x:v}.4b[{lane}]",
            sums = inout(vreg) sums,
            w = in(vreg) w,
            x = in(vreg) x,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// [`dot`] by the quad of `x`, which is a constant once this is inlined and the loop unrolled.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot_quad(quad: usize, sums: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    match quad % 4 {
        0 => dot::<0>(sums, w, x),
        1 => dot::<1>(sums, w, x),
        2 => dot::<2>(sums, w, x),
        _ => dot::<3>(sums, w, x),
    }
}

/// `VECTORS * LANES` rows of a panel from row `first` of group `group`.
///
/// # Safety
/// As `PanelFn`, with `T` tokens.
#[target_feature(enable = "neon,dotprod")]
unsafe fn tile<const S: usize, const MIN: bool, const T: usize>(
    call: &PanelCall,
    group: usize,
    first: usize,
) {
    let step = block_bytes(S, MIN);
    let minus_magic = vdupq_n_f32(-MAGIC_F32);
    let bias = vdupq_n_u8(CODE_BIAS as u8);
    let mut sums = [[vdupq_n_f32(0.0); VECTORS]; T];
    for b in 0..call.blocks {
        let offsets = activation::block_offsets(b, T);
        // SAFETY: block `b` is inside the panel and the tile.
        unsafe {
            let panel = call.panel.add((b * call.groups + group) * step);
            let lanes = |at: usize, v: usize| {
                vld1q_f32(panel.add(at + 4 * first).cast::<f32>().add(v * LANES))
            };
            let scales = call.x.add(offsets.scales).cast::<f32>();
            // Both operands of the instruction are signed.
            let mut x = [[vdupq_n_s8(0); 2]; T];
            for t in 0..T {
                for quads in 0..2 {
                    let codes = call.x.add(offsets.codes + t * BLOCK_LEN + 16 * quads);
                    x[t][quads] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes), bias));
                }
            }
            for half in 0..S {
                let mut dots = [[vdupq_n_s32(MAGIC); VECTORS]; T];
                for q in half * QUADS / S..(half + 1) * QUADS / S {
                    for v in 0..VECTORS {
                        let w = panel.add(q * LINE + 4 * (first + v * LANES));
                        let w = vld1q_s8(w.cast());
                        for t in 0..T {
                            dots[t][v] = dot_quad(q, dots[t][v], w, x[t][q / 4]);
                        }
                    }
                }
                for v in 0..VECTORS {
                    let scale = lanes(scales_at(S) + half * LANES_BYTES, v);
                    let shift = vmulq_f32(scale, minus_magic);
                    for t in 0..T {
                        let dot = vreinterpretq_f32_s32(dots[t][v]);
                        let dot = vfmaq_f32(shift, dot, scale);
                        let d = scales.add(t).read_unaligned();
                        sums[t][v] = vfmaq_n_f32(sums[t][v], dot, d);
                    }
                }
            }
            if MIN {
                for half in 0..S {
                    for t in 0..T {
                        let sum = activation::scaled_sum::<S>(call.x, offsets, t, half);
                        for v in 0..VECTORS {
                            let min = lanes(mins_at(S) + half * LANES_BYTES, v);
                            sums[t][v] = vfmaq_n_f32(sums[t][v], min, sum);
                        }
                    }
                }
            }
        }
    }
    let first = group * GROUP_ROWS + first;
    let rows = (VECTORS * LANES).min(call.rows.saturating_sub(first));
    for (t, sums) in sums.iter().enumerate() {
        let mut lanes = [0.0f32; VECTORS * LANES];
        // SAFETY: `y` is writable for the first `rows` rows of each token.
        unsafe {
            for (v, sum) in sums.iter().enumerate() {
                vst1q_f32(lanes.as_mut_ptr().add(v * LANES), *sum);
            }
            let y = call.y.add(t * call.y_stride + first.min(call.rows));
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), y, rows);
        }
    }
}
