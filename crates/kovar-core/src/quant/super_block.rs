//! What the super-blocks of 256 elements have in common: decoding by sub-blocks, and for encoding a
//! search for each sub-block and the rounding of the sub-blocks' scales (and minima) to multiples
//! of an f16.

use super::search::{self, AffineFit, magnitude_weights};
use super::{F16Bytes, largest_magnitude};

/// 256 elements `(d * scale) * q - (dmin * min)` in `S` sub-blocks.
pub(super) struct AffineCodes<const S: usize> {
    pub d: F16Bytes,
    pub dmin: F16Bytes,
    pub scales: [u8; S],
    pub mins: [u8; S],
    pub codes: [u8; 256],
}

impl<const S: usize> AffineCodes<S> {
    /// The elements.
    pub(super) fn decode(&self) -> [f32; 256] {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        let mut out = [0.0; 256];
        let sub_blocks = out.chunks_exact_mut(256 / S);
        let sub_blocks = sub_blocks.zip(self.codes.chunks_exact(256 / S));
        for ((out, codes), (&scale, &min)) in sub_blocks.zip(self.scales.iter().zip(&self.mins)) {
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            for (out, &code) in out.iter_mut().zip(codes) {
                *out = scale * f32::from(code) - min;
            }
        }
        out
    }

    /// Encodes sub-blocks of `L` elements: codes up to `max_code`, scales and minima up to
    /// `max_part`. For `reach` see [`search::fit_affine`].
    ///
    /// With an infinity or a NaN in it, a super-block gets the scale NaN.
    pub(super) fn encode<const L: usize>(
        values: &[f32; 256],
        max_code: u8,
        max_part: u8,
        reach: f64,
    ) -> Self {
        const { assert!(S * L == 256) };
        if !values.iter().all(|value| value.is_finite()) {
            return Self {
                d: F16Bytes::from_f32(f32::NAN),
                dmin: F16Bytes([0; 2]),
                scales: [0; S],
                mins: [0; S],
                codes: [0; 256],
            };
        }
        let (sub_blocks, _) = values.as_chunks::<L>();
        let mut fits = [AffineFit::default(); S];
        for (fit, values) in fits.iter_mut().zip(sub_blocks) {
            *fit = search::fit_affine(values, &magnitude_weights(values), max_code, reach);
        }
        let max_part = f32::from(max_part);
        let rounded = |parts: [f64; S]| {
            let largest = parts.iter().fold(0.0, |largest, &part| part.max(largest));
            let unit = F16Bytes::from_f32((largest / f64::from(max_part)) as f32);
            let nearest = |part| divide(part as f32, unit.to_f32()).round_ties_even();
            (
                unit,
                parts.map(|part| nearest(part).clamp(0.0, max_part) as u8),
            )
        };
        let (d, scales) = rounded(fits.map(|fit| fit.scale));
        let (dmin, mins) = rounded(fits.map(|fit| fit.min));
        let mut codes = [0; 256];
        let targets = codes.chunks_exact_mut(L).zip(sub_blocks);
        for ((codes, values), (&scale, &min)) in targets.zip(scales.iter().zip(&mins)) {
            let step = d.to_f32() * f32::from(scale);
            let min = dmin.to_f32() * f32::from(min);
            for (code, &value) in codes.iter_mut().zip(values) {
                let nearest = divide(value + min, step).round_ties_even();
                *code = nearest.clamp(0.0, f32::from(max_code)) as u8;
            }
        }
        Self {
            d,
            dmin,
            scales,
            mins,
            codes,
        }
    }
}

/// 256 elements `(d * scale) * level(code)` in `S` sub-blocks.
pub(super) struct ScaledCodes<const S: usize> {
    pub d: F16Bytes,
    pub scales: [i8; S],
    pub codes: [u8; 256],
}

impl<const S: usize> ScaledCodes<S> {
    /// The elements, where `level` is that of a code.
    pub(super) fn decode(&self, level: impl Fn(u8) -> f32) -> [f32; 256] {
        let d = self.d.to_f32();
        let mut out = [0.0; 256];
        let sub_blocks = out.chunks_exact_mut(256 / S);
        let sub_blocks = sub_blocks.zip(self.codes.chunks_exact(256 / S));
        for ((out, codes), &scale) in sub_blocks.zip(&self.scales) {
            let scale = d * f32::from(scale);
            for (out, &code) in out.iter_mut().zip(codes) {
                *out = scale * level(code);
            }
        }
        out
    }

    /// Encodes sub-blocks of `L` elements with scales in `-half..half`: `fit` finds the scale of a
    /// sub-block, `code` the code whose level is nearest to a number.
    ///
    /// With an infinity or a NaN in it, a super-block gets the scale NaN.
    pub(super) fn encode<const L: usize>(
        values: &[f32; 256],
        half: f32,
        fit: impl Fn(&[f32; L]) -> f64,
        code: impl Fn(f32) -> u8,
    ) -> Self {
        const { assert!(S * L == 256) };
        if !values.iter().all(|value| value.is_finite()) {
            return Self {
                d: F16Bytes::from_f32(f32::NAN),
                scales: [0; S],
                codes: [0; 256],
            };
        }
        let (sub_blocks, _) = values.as_chunks::<L>();
        let mut fits = [0.0; S];
        for (found, values) in fits.iter_mut().zip(sub_blocks) {
            *found = fit(values) as f32;
        }
        // The scale of largest magnitude takes the side with one more code.
        let d = F16Bytes::from_f32(largest_magnitude(&fits) / -half);
        let nearest = |fit| divide(fit, d.to_f32()).round_ties_even();
        let scales = fits.map(|fit| nearest(fit).clamp(-half, half - 1.0) as i8);
        let mut codes = [0; 256];
        let targets = codes.chunks_exact_mut(L).zip(sub_blocks);
        for ((codes, values), &scale) in targets.zip(&scales) {
            let step = d.to_f32() * f32::from(scale);
            for (target, &value) in codes.iter_mut().zip(values) {
                *target = code(divide(value, step));
            }
        }
        Self { d, scales, codes }
    }
}

/// `a / b`, 0 if `b` is 0: with a zero scale all codes stand for the same number.
fn divide(a: f32, b: f32) -> f32 {
    if b == 0.0 { 0.0 } else { a / b }
}
