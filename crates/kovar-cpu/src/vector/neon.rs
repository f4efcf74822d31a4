//! Lanes of NEON.

use std::arch::aarch64::*;

use half::f16;

use super::lanes::{Lanes, binary_intrinsics};

/// Four lanes.
#[derive(Clone, Copy)]
pub(crate) struct Neon(float32x4_t);

impl Neon {
    /// # Safety
    /// `from` is readable for four elements.
    #[inline(always)]
    unsafe fn load_as<T: Copy>(from: *const T, f: impl Fn(T) -> f32) -> Self {
        let mut out = [0.0; 4];
        for (i, lane) in out.iter_mut().enumerate() {
            // SAFETY: by this function's contract.
            *lane = f(unsafe { from.add(i).read_unaligned() });
        }
        // SAFETY: `out` has four elements.
        Self(unsafe { vld1q_f32(out.as_ptr()) })
    }
}

impl Lanes for Neon {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { vdupq_n_f32(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { vreinterpretq_f32_u8(vld1q_u8(from.cast())) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { vst1q_u8(to.cast(), vreinterpretq_u8_f32(self.0)) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self::load_as(from, |bits| f16::from_bits(bits).to_f32()) }
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        let mut lanes = [0.0; 4];
        // SAFETY: by the trait's contract; `lanes` has four elements.
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), self.0);
            for (i, lane) in lanes.into_iter().enumerate() {
                to.add(i).write_unaligned(f16::from_f32(lane).to_bits());
            }
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let words = vmovl_u16(vreinterpret_u16_u8(vld1_u8(from.cast())));
            Self(vreinterpretq_f32_u32(vshlq_n_u32::<16>(words)))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self::load_as(from, f32::from) }
    }

    binary_intrinsics!(
        add: vaddq_f32,
        sub: vsubq_f32,
        mul: vmulq_f32,
        div: vdivq_f32,
    );

    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { vfmaq_f32(c.0, self.0, b.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self(vbslq_f32(vcgtq_f32(self.0, other.0), self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self(vbslq_f32(vcltq_f32(self.0, other.0), self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn select_ge(a: Self, b: Self, x: Self, y: Self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self(vbslq_f32(vcgeq_f32(a.0, b.0), x.0, y.0)) }
    }

    #[inline(always)]
    unsafe fn scale_by_power(self, n: Self) -> Self {
        // Two factors, because one power of two alone may overflow or underflow.
        // SAFETY: by the trait's contract.
        unsafe {
            let n = vcvtnq_s32_f32(n.0);
            let half = vshrq_n_s32::<1>(n);
            let bias = vdupq_n_s32(127);
            let first = vshlq_n_s32::<23>(vaddq_s32(half, bias));
            let second = vshlq_n_s32::<23>(vaddq_s32(vsubq_s32(n, half), bias));
            let scaled = vmulq_f32(self.0, vreinterpretq_f32_s32(first));
            Self(vmulq_f32(scaled, vreinterpretq_f32_s32(second)))
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe { vaddvq_f32(self.0) }
    }

    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe { vmaxvq_f32(self.0) }
    }
}
