//! Lanes of AVX-512.

use std::arch::x86_64::*;

use super::lanes::{Lanes, binary_intrinsics};

/// 16 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

impl Lanes for Avx512 {
    const N: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    binary_intrinsics!(
        add: _mm512_add_ps,
        sub: _mm512_sub_ps,
        mul: _mm512_mul_ps,
        div: _mm512_div_ps,
        max: _mm512_max_ps,
        min: _mm512_min_ps,
    );

    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // SAFETY: by the trait's contract.
        unsafe {
            let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm256_storeu_si256(to.cast(), halves);
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let bytes = _mm_loadu_si128(from.cast());
            Self(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)))
        }
    }

    #[inline(always)]
    unsafe fn select_ge(a: Self, b: Self, x: Self, y: Self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let mask = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a.0, b.0);
            Self(_mm512_mask_blend_ps(mask, y.0, x.0))
        }
    }

    #[inline(always)]
    unsafe fn scale_by_power(self, n: Self) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm512_scalef_ps(self.0, n.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }

    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
}
