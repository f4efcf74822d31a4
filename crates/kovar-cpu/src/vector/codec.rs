//! Rows of other dtypes to and from f32, and the transposition of f32 rows.

use half::f16;
use kovar_core::plain::{F8E4M3, F8E5M2};

use super::lanes::{Lanes, MAX_LANES};

/// Elements and bytes of a Q8_0 block.
const Q8_0_LEN: usize = 32;
const Q8_0_BYTES: usize = 34;

/// Rows that are read as f32.
pub(crate) struct Rows {
    pub(crate) rows: usize,
    /// Elements of a row.
    pub(crate) n: usize,
    pub(crate) src: *const u8,
    /// Bytes from one row of `src` to the next.
    pub(crate) stride: usize,
    pub(crate) dst: *mut f32,
    /// Elements from one row of `dst` to the next.
    pub(crate) pitch: usize,
}

impl Rows {
    #[inline(always)]
    fn source(&self, row: usize) -> *const u8 {
        self.src.wrapping_add(row * self.stride)
    }

    #[inline(always)]
    fn target(&self, row: usize) -> *mut f32 {
        self.dst.wrapping_add(row * self.pitch)
    }
}

/// Converts 16-bit elements by whole vectors, and the last ones in a padded copy.
macro_rules! load {
    ($name:ident, $row:ident, $load:ident) => {
        /// # Safety
        /// For each row, `src` is readable for `n` 16-bit elements, of any alignment, and `dst`
        /// writable for `n`.
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(rows: &Rows) {
            for row in 0..rows.rows {
                // SAFETY: by this function's contract.
                unsafe { $row::<V>(rows.source(row), rows.n, rows.target(row)) }
            }
        }

        /// # Safety
        /// As one row of the function above.
        #[inline(always)]
        unsafe fn $row<V: Lanes>(src: *const u8, n: usize, dst: *mut f32) {
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

load!(load_f16, load_f16_row, load_f16);
load!(load_bf16, load_bf16_row, load_bf16);

/// Converts 8-bit elements by plain loops, which the compiler vectorises for each level.
macro_rules! load_bytes {
    ($name:ident, $element:ident) => {
        /// # Safety
        /// For each row, `src` is readable and `dst` writable for `n` elements.
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(rows: &Rows) {
            for row in 0..rows.rows {
                // SAFETY: by this function's contract.
                let (src, dst) = unsafe {
                    let src = std::slice::from_raw_parts(rows.source(row), rows.n);
                    (
                        src,
                        std::slice::from_raw_parts_mut(rows.target(row), rows.n),
                    )
                };
                for (y, &bits) in dst.iter_mut().zip(src) {
                    *y = $element(bits).to_f32();
                }
            }
        }
    };
}

load_bytes!(load_f8_e4m3, F8E4M3);
load_bytes!(load_f8_e5m2, F8E5M2);

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
/// For each row, `src` is readable for `n / 32` Q8_0 blocks, `dst` writable for `n` elements.
#[inline(always)]
pub(super) unsafe fn load_q8_0<V: Lanes>(rows: &Rows) {
    for row in 0..rows.rows {
        // SAFETY: by this function's contract.
        unsafe { load_q8_0_row::<V>(rows.source(row), rows.n, rows.target(row)) }
    }
}

/// # Safety
/// As one row of [`load_q8_0`].
#[inline(always)]
unsafe fn load_q8_0_row<V: Lanes>(src: *const u8, n: usize, dst: *mut f32) {
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

/// # Safety
/// `src` is readable for `rows` rows of `n` elements, `stride` elements apart; `dst` is writable
/// for `n` rows of `rows` elements, `pitch` elements apart.
#[inline(always)]
pub(super) unsafe fn transpose<V: Lanes>(
    src: *const f32,
    stride: usize,
    rows: usize,
    n: usize,
    dst: *mut f32,
    pitch: usize,
) {
    const SIDE: usize = 4;
    type Square = [[f32; SIDE]; SIDE];
    // SAFETY: by this function's contract.
    unsafe {
        for row in (0..rows).step_by(SIDE) {
            let whole = row + SIDE <= rows;
            let mut i = 0;
            while whole && i + SIDE <= n {
                let mut square: Square = [[0.0; SIDE]; SIDE];
                for (r, line) in square.iter_mut().enumerate() {
                    let from = src.add((row + r) * stride + i);
                    *line = from.cast::<[f32; SIDE]>().read_unaligned();
                }
                let mut turned: Square = [[0.0; SIDE]; SIDE];
                for (c, line) in turned.iter_mut().enumerate() {
                    *line = [square[0][c], square[1][c], square[2][c], square[3][c]];
                }
                for (c, line) in turned.iter().enumerate() {
                    let to = dst.add((i + c) * pitch + row);
                    to.cast::<[f32; SIDE]>().write_unaligned(*line);
                }
                i += SIDE;
            }
            for r in row..rows.min(row + SIDE) {
                for c in i..n {
                    *dst.add(c * pitch + r) = *src.add(r * stride + c);
                }
            }
        }
    }
}
