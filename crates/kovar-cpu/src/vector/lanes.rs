//! The vector type over which kernel bodies are generic.

/// `1.5 * 2^23`: added to a small number, it leaves the number, rounded, in the low bits.
const ROUNDER: f32 = 12_582_912.0;

/// The most lanes of any level.
pub(crate) const MAX_LANES: usize = 16;

/// A vector of f32 lanes.
///
/// Generic bodies are always inlined into a function with the target features of one level, where
/// the intrinsics become single instructions.
///
/// # Safety
/// Every method needs a processor with the level's features. Pointers are valid for
/// [`N`](Self::N) elements, of any alignment.
pub(crate) trait Lanes: Copy {
    /// Lanes.
    const N: usize;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn load_f16(from: *const u16) -> Self;
    unsafe fn store_f16(self, to: *mut u16);
    unsafe fn load_bf16(from: *const u16) -> Self;
    unsafe fn load_i8(from: *const i8) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self * b + c`, rounded once where the level can.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    /// The greater one; `other` where `other` is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The lesser one; `other` where `other` is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// `a >= b ? x : y`, lane by lane.
    unsafe fn select_ge(a: Self, b: Self, x: Self, y: Self) -> Self;
    /// `self * 2^n` for integral `n` between -160 and 130.
    unsafe fn scale_by_power(self, n: Self) -> Self;
    /// The sum of the lanes.
    unsafe fn sum(self) -> f32;
    /// The greatest lane.
    unsafe fn max_lane(self) -> f32;

    /// To bfloat16, to nearest with ties to even.
    #[inline(always)]
    unsafe fn store_bf16(self, to: *mut u16) {
        let mut lanes = [0f32; MAX_LANES];
        // SAFETY: by the trait's contract; `lanes` has room for `N`.
        unsafe {
            self.store(lanes.as_mut_ptr());
            for (i, lane) in lanes.iter().enumerate().take(Self::N) {
                to.add(i).write_unaligned(bf16_bits(*lane));
            }
        }
    }

    /// The nearest integer, for magnitudes below 2^22.
    #[inline(always)]
    unsafe fn round(self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let rounder = Self::splat(ROUNDER);
            self.add(rounder).sub(rounder)
        }
    }

    /// `e^self`, with a relative error of about 1e-7; 0 below -104, infinity above 89, NaN for NaN.
    ///
    /// Cody and Waite's reduction and the minimax polynomial of Moshier's Cephes library.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let x = Self::splat(89.0).min(Self::splat(-106.0).max(self));
            let n = x.mul(Self::splat(std::f32::consts::LOG2_E)).round();
            let r = n.mul_add(Self::splat(-0.693_359_4), x);
            let r = n.mul_add(Self::splat(2.121_944_4e-4), r);
            let mut p = Self::splat(1.987_569_1e-4);
            for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
                p = p.mul_add(r, Self::splat(c));
            }
            let p = p.mul(r).mul_add(r, r).add(Self::splat(1.0));
            p.scale_by_power(n)
        }
    }

    /// `tanh(self)`, with an absolute error of about 1e-7.
    #[inline(always)]
    unsafe fn tanh(self) -> Self {
        // SAFETY: by the trait's contract.
        unsafe {
            let one = Self::splat(1.0);
            let e = self.add(self).exp();
            one.sub(Self::splat(2.0).div(e.add(one)))
        }
    }
}

/// Defines methods of [`Lanes`] that are one intrinsic on two vectors.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! binary_intrinsics {
    ($($method:ident: $intrinsic:ident),* $(,)?) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, other: Self) -> Self {
                // SAFETY: by the trait's contract.
                Self(unsafe { $intrinsic(self.0, other.0) })
            }
        )*
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use binary_intrinsics;

/// The bits of the nearest bfloat16.
#[inline(always)]
pub(crate) fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    (if value.is_nan() { quiet } else { rounded }) as u16
}
