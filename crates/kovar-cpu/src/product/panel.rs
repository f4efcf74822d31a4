//! A panel: the codes of some groups of rows decoded to signed bytes, with f32 scales. One kernel
//! then serves every dtype, and codes are decoded once for many tokens.
//!
//! For each block of 32 elements, each group of the panel holds in turn:
//!
//! | bytes | content |
//! |---|---|
//! | 8 x 64 i8 | codes `w`, quad after quad, in the order of the prepared form's lines |
//! | S x 16 i32 | `MAGIC - 128 * sum(w)` per row |
//! | S x 16 f32 | scales per row |
//! | S x 16 f32 | minima per row, for dtypes that have them |
//!
//! `S` is 2 if every 16 elements have their own scale. A kernel starts its integer sum of
//! `(code + 128) * w` from the second row of the table, which cancels the bias of the activations.
//! It also adds the bits of the float [`MAGIC_F32`], so that the bits of the sum are the float
//! `MAGIC_F32 + sum`, and `scale * sum` is one fused multiply-add of exact operands, without a
//! conversion.

use kovar_core::quant::levels::e8m0_half;

use super::activation::CODE_BIAS;
use crate::pack::{BLOCK_LEN, Codes, Format, GROUP_ROWS, LINE, SUPER_BLOCKS, Scales, Values};

/// 1.5 * 2^23: adding an integer below 2^22 in magnitude to its bits adds the integer to the float.
/// A block's sum is at most 32 * 127 * 128 < 2^20 in magnitude, and the product of a scale (at most
/// 19 significant bits) and this number is exact. For scales above 2^103, which only MXFP4 has,
/// that product is infinite and the result NaN.
pub(crate) const MAGIC_F32: f32 = 12_582_912.0;

/// The bits of [`MAGIC_F32`].
pub(crate) const MAGIC: i32 = MAGIC_F32.to_bits() as i32;

/// Quads in a block.
pub(crate) const QUADS: usize = BLOCK_LEN / 4;

/// Bytes of one f32 or i32 per row of a group.
pub(crate) const LANES_BYTES: usize = 4 * GROUP_ROWS;

/// Offset of the starting sums in a group's block.
pub(crate) const STARTS_AT: usize = QUADS * LINE;

/// Offset of the scales.
pub(crate) const fn scales_at(sub_scales: usize) -> usize {
    STARTS_AT + sub_scales * LANES_BYTES
}

/// Offset of the minima.
pub(crate) const fn mins_at(sub_scales: usize) -> usize {
    scales_at(sub_scales) + sub_scales * LANES_BYTES
}

/// Bytes of a group's block.
pub(crate) const fn block_bytes(sub_scales: usize, min: bool) -> usize {
    mins_at(sub_scales) + if min { sub_scales * LANES_BYTES } else { 0 }
}

/// The most bytes that a group's block takes.
pub(crate) const MAX_BLOCK_BYTES: usize = block_bytes(2, true);

/// Kinds of panels, by the kernel that they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum PanelKind {
    /// One scale per block.
    Scale,
    /// One scale per block; codes of up to 8 bits, which overflow 16-bit pair sums.
    ScaleWide,
    /// One scale and one minimum per block.
    ScaleMin,
    /// Two scales per block.
    TwoScales,
    /// Two scales and two minima per block.
    TwoScalesMins,
}

/// The number of kinds of panels.
pub(crate) const N_KINDS: usize = PanelKind::TwoScalesMins as usize + 1;

/// One instance of a panel kernel, generic over the scales of a block and whether it has minima,
/// per [`PanelKind`].
macro_rules! per_kind {
    ($function:ident) => {
        [
            $function::<1, false>,
            $function::<1, false>,
            $function::<1, true>,
            $function::<2, false>,
            $function::<2, true>,
        ]
    };
}
pub(crate) use per_kind;

impl PanelKind {
    pub(crate) const fn of<F: Format>() -> Self {
        match (F::SUB_SCALES, F::MIN) {
            (2, false) => PanelKind::TwoScales,
            (2, true) => PanelKind::TwoScalesMins,
            (_, true) => PanelKind::ScaleMin,
            (_, false) if is_wide::<F>() => PanelKind::ScaleWide,
            (_, false) => PanelKind::Scale,
        }
    }

    pub(crate) const fn block_bytes(self) -> usize {
        match self {
            PanelKind::Scale | PanelKind::ScaleWide => block_bytes(1, false),
            PanelKind::ScaleMin => block_bytes(1, true),
            PanelKind::TwoScales => block_bytes(2, false),
            PanelKind::TwoScalesMins => block_bytes(2, true),
        }
    }
}

/// Whether codes need more than 6 bits and a sign: the sum of two products of such codes with
/// biased activations may overflow 16 bits.
const fn is_wide<F: Format>() -> bool {
    match F::VALUES {
        Values::Less(_) => matches!(F::CODES, Codes::Byte),
        Values::Table(levels) => {
            let (mut i, mut wide) = (0, false);
            while i < levels.len() {
                wide |= levels[i].unsigned_abs() >= 64;
                i += 1;
            }
            wide
        }
    }
}

/// The arguments of a level's decoder: `blocks` blocks of one group's scales and codes are decoded
/// to `out`, `step` bytes apart.
#[derive(Clone, Copy)]
pub(crate) struct DecodeCall {
    pub scales: *const u8,
    pub codes: *const u8,
    pub blocks: usize,
    pub out: *mut u8,
    pub step: usize,
}

/// The arguments of a level's panel kernel: `groups` groups (1 or 2) of a panel and a tile of
/// `tokens` tokens. `y[t * y_stride + row]` is written for the first `rows` rows.
#[derive(Clone, Copy)]
pub(crate) struct PanelCall {
    pub panel: *const u8,
    pub groups: usize,
    pub blocks: usize,
    pub x: *const u8,
    pub tokens: usize,
    pub y: *mut f32,
    pub y_stride: usize,
    pub rows: usize,
}

/// A level's decoder.
pub(crate) trait Decode {
    /// Replaces 4-bit codes by their levels.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn look_up(line: &mut [i8; LINE], levels: &'static [i8; 16]);

    /// Decodes a group in plain code, which the compiler vectorises except for the look-up.
    ///
    /// # Safety
    /// `scales` and `codes` are a group of `F` with at least `blocks` blocks; `out` is writable for
    /// `blocks` group blocks `step` bytes apart; the pointers are aligned to 64 bytes; the machine
    /// has the level.
    #[inline(always)]
    unsafe fn decode<F: Format>(call: &DecodeCall) {
        for b in 0..call.blocks {
            // SAFETY: block `b` is inside the group and the panel, and lines are plain bytes.
            unsafe {
                let codes = call
                    .codes
                    .add(b * F::CODES.block_bytes())
                    .cast::<[u8; LINE]>();
                let out = call.out.add(b * call.step);
                let lines = &mut *out.cast::<[[i8; LINE]; QUADS]>();
                decode_codes::<F, Self>(codes, lines);
                let starts = &mut *out.add(STARTS_AT).cast::<[[i32; GROUP_ROWS]; 2]>();
                for (start, lines) in starts
                    .iter_mut()
                    .zip(lines.chunks_exact(QUADS / F::SUB_SCALES))
                {
                    *start = starting_sums(lines);
                }
                decode_scales::<F>(call.scales, b, out);
            }
        }
    }
}

/// # Safety
/// `codes` points to the lines of a block of `F`; the machine has the level of `L`.
#[inline(always)]
unsafe fn decode_codes<F: Format, L: Decode + ?Sized>(
    codes: *const [u8; LINE],
    lines: &mut [[i8; LINE]; QUADS],
) {
    // SAFETY: each kind of codes has the lines that are read for it.
    let line = |l: usize| unsafe { &*codes.add(l) };
    for (q, out) in lines.iter_mut().enumerate() {
        let nibble = || (line(q % 4), 4 * (q / 4), 0x0f);
        let crumb = |first: usize| (line(first + q / 4), 2 * (q % 4), 3);
        let bit = |first: usize| (line(first), q, 1);
        // Low bits, high bits, and where the high ones go.
        let none = (line(0), 0, 0);
        let (low, high, high_at) = match F::CODES {
            Codes::Crumb => (crumb(0), none, 0),
            Codes::Crumb1 => (crumb(0), bit(2), 2),
            Codes::Nibble => (nibble(), none, 0),
            Codes::Nibble1 => (nibble(), bit(4), 4),
            Codes::Nibble2 => (nibble(), crumb(4), 4),
            Codes::Byte => ((line(q), 0, 0xff), none, 0),
        };
        for (out, (low_bits, high_bits)) in out.iter_mut().zip(low.0.iter().zip(high.0)) {
            let code = low_bits >> low.1 & low.2 | (high_bits >> high.1 & high.2) << high_at;
            *out = match F::VALUES {
                Values::Less(offset) => code.wrapping_sub(offset) as i8,
                Values::Table(_) => code as i8,
            };
        }
        if let Values::Table(levels) = F::VALUES {
            // SAFETY: by this function's contract.
            unsafe { L::look_up(out, levels) };
        }
    }
}

#[inline(always)]
fn starting_sums(lines: &[[i8; LINE]]) -> [i32; GROUP_ROWS] {
    std::array::from_fn(|row| {
        let quads = lines.iter().flat_map(|line| &line[4 * row..4 * row + 4]);
        MAGIC - CODE_BIAS * quads.map(|w| i32::from(*w)).sum::<i32>()
    })
}

/// # Safety
/// `scales` are a group's scales, of at least `b + 1` blocks; `out` is a group block.
#[inline(always)]
unsafe fn decode_scales<F: Format>(scales: *const u8, b: usize, out: *mut u8) {
    let (unit, sub) = F::SCALES.unit_of(b);
    // SAFETY: a unit holds the vectors that its kind of scales says; a group block has room for
    // the scales and minima of `F`.
    unsafe {
        let unit = scales.add(unit * F::SCALES.unit_bytes());
        let halves = |which: usize| {
            &*unit
                .add(which * 2 * GROUP_ROWS)
                .cast::<[[u8; 2]; GROUP_ROWS]>()
        };
        let small = |which: usize, i: usize| {
            &*unit
                .add(which * 2 * GROUP_ROWS + i * GROUP_ROWS)
                .cast::<[u8; GROUP_ROWS]>()
        };
        let f32s = |at: usize| &mut *out.add(at).cast::<[f32; GROUP_ROWS]>();
        let d = || halves_to_f32(halves(0));
        match F::SCALES {
            Scales::D | Scales::D256 => *f32s(scales_at(1)) = d(),
            Scales::DM => {
                *f32s(scales_at(1)) = d();
                *f32s(mins_at(1)) = halves_to_f32(halves(1));
            }
            Scales::E8M0 => *f32s(scales_at(1)) = small(0, 0).map(e8m0_half),
            Scales::K2 => {
                let (d, dmin) = (d(), halves_to_f32(halves(1)));
                for half in 0..2 {
                    let parts = small(2, 2 * sub + half);
                    *f32s(scales_at(2) + half * LANES_BYTES) =
                        std::array::from_fn(|i| d[i] * f32::from(parts[i] & 0x0f));
                    *f32s(mins_at(2) + half * LANES_BYTES) =
                        std::array::from_fn(|i| -(dmin[i] * f32::from(parts[i] >> 4)));
                }
            }
            Scales::K => {
                let (d, dmin) = (d(), halves_to_f32(halves(1)));
                let (scale, min) = (small(2, sub), small(2 + SUPER_BLOCKS / 2, sub));
                *f32s(scales_at(1)) = std::array::from_fn(|i| d[i] * f32::from(scale[i]));
                *f32s(mins_at(1)) = std::array::from_fn(|i| -(dmin[i] * f32::from(min[i])));
            }
            Scales::K6 => {
                let d = d();
                for half in 0..2 {
                    let scale = small(1, 2 * sub + half);
                    *f32s(scales_at(2) + half * LANES_BYTES) =
                        std::array::from_fn(|i| d[i] * f32::from(scale[i] as i8));
                }
            }
            Scales::XS => {
                let (d, scale) = (d(), small(1, sub));
                *f32s(scales_at(1)) = std::array::from_fn(|i| d[i] * f32::from(scale[i] as i8));
            }
        }
    }
}

#[inline(always)]
fn halves_to_f32(halves: &[[u8; 2]; GROUP_ROWS]) -> [f32; GROUP_ROWS] {
    halves.map(|bits| half_to_f32(u16::from_le_bytes(bits)))
}

/// The value of an f16, without branches so that lanes convert together.
#[inline(always)]
pub(crate) fn half_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    // Rebias the exponent by multiplying with 2^112: it handles subnormals exactly. Infinities
    // and NaNs keep their mantissa and get the exponent of all ones.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if magnitude >= 0x0f80_0000 {
        0x7f80_0000
    } else {
        0
    };
    f32::from_bits(scaled | special | sign)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::half_to_f32;

    #[test]
    fn every_half_converts_exactly() {
        for bits in 0..=u16::MAX {
            let expected = f16::from_bits(bits).to_f32();
            let actual = half_to_f32(bits);
            let same = actual.to_bits() == expected.to_bits();
            assert!(same || actual.is_nan() && expected.is_nan(), "{bits:04x}");
        }
    }
}
