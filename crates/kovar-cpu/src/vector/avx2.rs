//! Lanes of AVX2 with FMA and F16C.

use std::arch::x86_64::*;

use super::lanes::{Lanes, binary_intrinsics};

/// 8 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256);

impl Lanes for Avx2 {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    binary_intrinsics!(
        add: _mm256_add_ps,
        sub: _mm256_sub_ps,
        mul: _mm256_mul_ps,
        div: _mm256_div_ps,
        max: _mm256_max_ps,
        min: _mm256_min_ps,
    );

    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) })
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // SAFETY: by the trait's contract.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm_storeu_si128(to.cast(), halves);
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let words = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            Self(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(words)))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let bytes = _mm_loadl_epi64(from.cast());
            Self(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)))
        }
    }

    #[inline(always)]
    unsafe fn select_ge(a: Self, b: Self, x: Self, y: Self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let mask = _mm256_cmp_ps::<_CMP_GE_OQ>(a.0, b.0);
            Self(_mm256_blendv_ps(y.0, x.0, mask))
        }
    }

    #[inline(always)]
    unsafe fn scale_by_power(self, n: Self) -> Self {
        // Two factors, because one power of two alone may overflow or underflow.
        // SAFETY: by the trait's contract.
        unsafe {
            let n = _mm256_cvtps_epi32(n.0);
            let half = _mm256_srai_epi32::<1>(n);
            let bias = _mm256_set1_epi32(127);
            let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
            let rest = _mm256_add_epi32(_mm256_sub_epi32(n, half), bias);
            let second = _mm256_slli_epi32::<23>(rest);
            let scaled = _mm256_mul_ps(self.0, _mm256_castsi256_ps(first));
            Self(_mm256_mul_ps(scaled, _mm256_castsi256_ps(second)))
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe {
            let four = _mm_add_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        // SAFETY: by the trait's contract.
        unsafe {
            let four = _mm_max_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}
