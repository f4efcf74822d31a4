//! Kernels in plain code, for any machine.

use kovar_core::plain::{F8E4M3, F8E5M2};

use super::activation;
use super::kernels::{FloatCall, FloatFn, Kernels};
use super::panel::{
    self, Decode, LANES_BYTES, MAGIC_F32, PanelCall, QUADS, STARTS_AT, block_bytes, mins_at,
    per_kind, scales_at,
};
use crate::pack::{GROUP_ROWS, LINE, per_format};
use crate::simd::SimdLevel;

pub(super) static KERNELS: Kernels = Kernels {
    level: SimdLevel::Portable,
    tile: 4,
    fused_tokens: 0,
    quantize: activation::quantize,
    decode: per_format!(Portable::decode),
    panel: per_kind!(panel_product),
    fused: None,
    float: FLOAT,
    float_rows: 4,
};

struct Portable;

impl Decode for Portable {
    #[inline(always)]
    unsafe fn look_up(line: &mut [i8; LINE], levels: &'static [i8; 16]) {
        for code in line {
            *code = levels[usize::from(*code as u8 & 0x0f)];
        }
    }
}

/// # Safety
/// As `PanelFn`.
unsafe fn panel_product<const S: usize, const MIN: bool>(call: &PanelCall) {
    let step = block_bytes(S, MIN);
    for group in 0..call.groups {
        for t in 0..call.tokens {
            let mut sums = [0.0f32; GROUP_ROWS];
            for b in 0..call.blocks {
                // SAFETY: the panel has `groups` group blocks per block, and the tile `tokens`
                // tokens.
                unsafe {
                    let block = call.panel.add((b * call.groups + group) * step);
                    add_block::<S, MIN>(block, call, b, t, &mut sums);
                }
            }
            let first = group * GROUP_ROWS;
            let rows = GROUP_ROWS.min(call.rows.saturating_sub(first));
            // SAFETY: `y` is writable for the first `rows` rows of each token.
            unsafe {
                let y = call.y.add(t * call.y_stride + first);
                std::ptr::copy_nonoverlapping(sums.as_ptr(), y, rows);
            }
        }
    }
}

/// # Safety
/// `block` is a group block of the panel; `b` and `t` are inside the tile.
#[inline(always)]
unsafe fn add_block<const S: usize, const MIN: bool>(
    block: *const u8,
    call: &PanelCall,
    b: usize,
    t: usize,
    sums: &mut [f32; GROUP_ROWS],
) {
    let offsets = activation::block_offsets(b, call.tokens);
    // SAFETY: by this function's contract; f32s of a tile are read unaligned.
    unsafe {
        let lanes = |at: usize| &*block.add(at).cast::<[f32; GROUP_ROWS]>();
        let x = &*call
            .x
            .add(offsets.codes + t * 4 * QUADS)
            .cast::<[[u8; 4]; QUADS]>();
        let d = call
            .x
            .add(offsets.scales + 4 * t)
            .cast::<f32>()
            .read_unaligned();
        for half in 0..S {
            let mut dots = *block
                .add(STARTS_AT + half * LANES_BYTES)
                .cast::<[i32; GROUP_ROWS]>();
            for q in half * QUADS / S..(half + 1) * QUADS / S {
                let line = &*block.add(q * LINE).cast::<[[i8; 4]; GROUP_ROWS]>();
                for (dot, w) in dots.iter_mut().zip(line) {
                    for (w, x) in w.iter().zip(&x[q]) {
                        *dot += i32::from(*w) * i32::from(*x);
                    }
                }
            }
            let scale = lanes(scales_at(S) + half * LANES_BYTES);
            for i in 0..GROUP_ROWS {
                let dot = f32::from_bits(dots[i] as u32) - MAGIC_F32;
                sums[i] += dot * scale[i] * d;
            }
            if MIN {
                let sum = activation::scaled_sum::<S>(call.x, offsets, t, half);
                let min = lanes(mins_at(S) + half * LANES_BYTES);
                for i in 0..GROUP_ROWS {
                    sums[i] += min[i] * sum;
                }
            }
        }
    }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float_f32(call: &FloatCall) {
    // SAFETY: by this function's contract.
    unsafe { float_product::<4>(call, |w| f32::from_le_bytes(*w)) }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float_f16(call: &FloatCall) {
    // SAFETY: by this function's contract.
    unsafe { float_product::<2>(call, |w| panel::half_to_f32(u16::from_le_bytes(*w))) }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float_bf16(call: &FloatCall) {
    // SAFETY: by this function's contract.
    unsafe {
        float_product::<2>(call, |w| {
            f32::from_bits(u32::from(u16::from_le_bytes(*w)) << 16)
        })
    }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float_f8_e4m3(call: &FloatCall) {
    // SAFETY: by this function's contract.
    unsafe { float_product::<1>(call, |[w]| F8E4M3(*w).to_f32()) }
}

/// # Safety
/// As `FloatFn`.
unsafe fn float_f8_e5m2(call: &FloatCall) {
    // SAFETY: by this function's contract.
    unsafe { float_product::<1>(call, |[w]| F8E5M2(*w).to_f32()) }
}

/// Every plain float dtype, by [`super::FloatDType`].
pub(super) const FLOAT: [FloatFn; 5] = [
    float_f32,
    float_f16,
    float_bf16,
    float_f8_e4m3,
    float_f8_e5m2,
];

/// Dot products of plain rows, whose elements have `B` bytes.
///
/// # Safety
/// As `FloatFn`.
#[inline(always)]
unsafe fn float_product<const B: usize>(call: &FloatCall, to_f32: impl Fn(&[u8; B]) -> f32) {
    const LANES: usize = 16;
    for row in 0..call.rows {
        // SAFETY: `w` has `rows` rows of `k` elements, `w_stride` bytes apart.
        let w = unsafe {
            std::slice::from_raw_parts(call.w.add(row * call.w_stride).cast::<[u8; B]>(), call.k)
        };
        for t in 0..call.tokens {
            // SAFETY: `x` has `tokens` rows of `k` elements.
            let x = unsafe { std::slice::from_raw_parts(call.x.add(t * call.x_stride), call.k) };
            let mut lanes = [0.0f32; LANES];
            let (w_chunks, w_rest) = w.as_chunks::<LANES>();
            let (x_chunks, x_rest) = x.as_chunks::<LANES>();
            for (w, x) in w_chunks.iter().zip(x_chunks) {
                for i in 0..LANES {
                    lanes[i] += to_f32(&w[i]) * x[i];
                }
            }
            let mut sum: f32 = lanes.iter().sum();
            for (w, x) in w_rest.iter().zip(x_rest) {
                sum += to_f32(w) * x;
            }
            // SAFETY: `y` has `rows` elements per token.
            unsafe {
                let y = call.y.add(t * call.y_stride + row);
                y.write(if call.add { *y + sum } else { sum });
            }
        }
    }
}
