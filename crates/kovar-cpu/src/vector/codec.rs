//! Rows of other dtypes to and from f32.

use half::f16;

use super::lanes::{Lanes, MAX_LANES};

/// Elements and bytes of a Q8_0 block.
const Q8_0_LEN: usize = 32;
const Q8_0_BYTES: usize = 34;

/// Converts `n` elements of `T` with whole vectors, the last ones by way of a padded copy.
macro_rules! load {
    ($name:ident, $load:ident) => {
        /// # Safety
        /// `src` is readable for `n` 16-bit elements, of any alignment, `dst` writable for `n`.
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(src: *const u8, n: usize, dst: *mut f32) {
            let src = src.cast::<u16>();
            let mut i = 0;
            // SAFETY: by this function's contract; the padded copies have `MAX_LANES` elements.
            unsafe {
                while i + V::N <= n {
                    V::$load(src.add(i)).store(dst.add(i));
                    i += V::N;
                }
                if i < n {
                    let mut last = [0u16; MAX_LANES];
                    let mut lanes = [0f32; MAX_LANES];
                    std::ptr::copy_nonoverlapping(
                        src.add(i).cast::<u8>(),
                        last.as_mut_ptr().cast(),
                        2 * (n - i),
                    );
                    V::$load(last.as_ptr()).store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), dst.add(i), n - i);
                }
            }
        }
    };
}

load!(load_f16, load_f16);
load!(load_bf16, load_bf16);

macro_rules! store {
    ($name:ident, $store:ident) => {
        /// # Safety
        /// `src` is readable for `n` elements, `dst` writable for `n` 16-bit elements, of any
        /// alignment.
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(src: *const f32, n: usize, dst: *mut u8) {
            let dst = dst.cast::<u16>();
            let mut i = 0;
            // SAFETY: by this function's contract; the padded copies have `MAX_LANES` elements.
            unsafe {
                while i + V::N <= n {
                    V::load(src.add(i)).$store(dst.add(i));
                    i += V::N;
                }
                if i < n {
                    let mut last = [0f32; MAX_LANES];
                    let mut halves = [0u16; MAX_LANES];
                    std::ptr::copy_nonoverlapping(src.add(i), last.as_mut_ptr(), n - i);
                    V::load(last.as_ptr()).$store(halves.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(
                        halves.as_ptr().cast::<u8>(),
                        dst.add(i).cast(),
                        2 * (n - i),
                    );
                }
            }
        }
    };
}

store!(store_f16, store_f16);
store!(store_bf16, store_bf16);

/// # Safety
/// `src` is readable for `n / 32` Q8_0 blocks, `dst` writable for `n` elements.
#[inline(always)]
pub(super) unsafe fn load_q8_0<V: Lanes>(src: *const u8, n: usize, dst: *mut f32) {
    for block in 0..n / Q8_0_LEN {
        // SAFETY: by this function's contract; 32 is a multiple of every level's lanes.
        unsafe {
            let at = src.add(block * Q8_0_BYTES);
            let d = f16::from_bits(at.cast::<u16>().read_unaligned()).to_f32();
            let (d, codes) = (V::splat(d), at.add(2).cast::<i8>());
            let mut i = 0;
            while i < Q8_0_LEN {
                let value = V::load_i8(codes.add(i)).mul(d);
                value.store(dst.add(block * Q8_0_LEN + i));
                i += V::N;
            }
        }
    }
}
