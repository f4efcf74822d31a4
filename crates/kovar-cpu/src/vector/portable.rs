//! Lanes in plain code, which the compiler turns into the target's baseline vectors.

use half::f16;

use super::lanes::Lanes;

const N: usize = 8;

/// Eight lanes.
#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; N]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self;
        for (lane, other) in out.0.iter_mut().zip(other.0) {
            *lane = f(*lane, other);
        }
        out
    }

    /// # Safety
    /// `from` is readable for eight elements.
    #[inline(always)]
    unsafe fn load_as<T: Copy>(from: *const T, f: impl Fn(T) -> f32) -> Self {
        let mut out = [0.0; N];
        for (i, lane) in out.iter_mut().enumerate() {
            // SAFETY: by this function's contract.
            *lane = f(unsafe { from.add(i).read_unaligned() });
        }
        Self(out)
    }
}

/// `2^n`, for `n` in the range of normal numbers.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

impl Lanes for Plain {
    const N: usize = N;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; N])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by the trait's contract.
        Self(unsafe { from.cast::<[f32; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { to.cast::<[f32; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self::load_as(from, |bits| f16::from_bits(bits).to_f32()) }
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        for (i, lane) in self.0.into_iter().enumerate() {
            // SAFETY: by the trait's contract.
            unsafe { to.add(i).write_unaligned(f16::from_f32(lane).to_bits()) }
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self::load_as(from, |bits| f32::from_bits(u32::from(bits) << 16)) }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { Self::load_as(from, f32::from) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        self.zip(b, |a, b| a * b).zip(c, |product, c| product + c)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    unsafe fn select_ge(a: Self, b: Self, x: Self, y: Self) -> Self {
        let mut out = y;
        for i in 0..N {
            if a.0[i] >= b.0[i] {
                out.0[i] = x.0[i];
            }
        }
        out
    }

    #[inline(always)]
    unsafe fn scale_by_power(self, n: Self) -> Self {
        // Two factors, because one power of two alone may overflow or underflow.
        self.zip(n, |value, n| {
            let n = (n + 12_582_912.0).to_bits().wrapping_sub(0x4b40_0000) as i32;
            let half = n >> 1;
            value * power(half) * power(n.wrapping_sub(half))
        })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let l = self.0;
        ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
    }

    #[inline(always)]
    unsafe fn max_lane(self) -> f32 {
        let greatest = |a: f32, b: f32| if a > b { a } else { b };
        self.0.into_iter().fold(f32::NEG_INFINITY, greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zip_keeps_the_order_of_lanes() {
        let lanes = Plain([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(lanes.zip(lanes, |a, b| a * b).0[7], 49.0);
    }
}
