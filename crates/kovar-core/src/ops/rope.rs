//! Rotary position embedding (Su et al. 2021), and the table of its angles.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass};
use crate::DType;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// Which elements of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// `(2i, 2i + 1)`, as in the paper and in GGUF files of the `llama` architecture.
    Normal,
    /// `(i, i + n_rot / 2)`, as in GPT-NeoX and in Hugging Face's Llama.
    Neox,
}

/// Rotates each pair `(a, b)` of a head by its angle: `(a cos - b sin, a sin + b cos)`.
///
/// - `x`: F32, F16 or BF16, `[.., tokens, heads, head_dim]`.
/// - `table`: F32 `[tokens, n_rot / 2, 2]`, cos and sin of each angle, made on the host by
///   [`RopeAngles::fill_table`]. `n_rot <= head_dim`; the elements from `n_rot` on are copied.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rope {
    /// Which elements are rotated together.
    pub pairing: Pairing,
}

/// Tables of angles.
pub(super) const TABLES: &[DType] = &[DType::F32];

impl Rules for Rope {
    fn signature(&self) -> Signature {
        Signature::new("rope", &["x", "table"])
            .in_place(&[0])
            .classes(&[OpClass::Rope])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        let dims = x.dims();
        let table = operands.typed(1, TABLES)?.dims();
        operands.rank(0, dims.rank() >= 3, "[.., tokens, heads, head_dim]")?;
        let pairs = table.rank() == 3 && table[2] == 2;
        operands.rank(1, pairs, "[tokens, n_rot / 2, 2]")?;
        let same = table[0] == dims.from_end(2);
        operands.dims(1, 0, same, "one row of the table for each token")?;
        let fits = table[1] <= dims.from_end(0) / 2;
        operands.dims(1, 0, fits, "n_rot must not exceed head_dim")?;
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: *dims,
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(3)
    }
}

impl Graph {
    /// Appends [`Rope`] over `x` in place.
    pub fn rope_in_place(
        &mut self,
        x: ValueId,
        table: ValueId,
        pairing: Pairing,
    ) -> Result<ValueId, GraphError> {
        self.apply_in_place(Op::from(Rope { pairing }), &[x, table])
    }
}

/// How the angles are changed for contexts longer than a model was trained on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Positions divided by `factor` (Chen et al. 2023).
    Linear {
        /// The new context divided by the trained context.
        factor: f64,
    },
    /// Llama 3.1: long wavelengths divided by `factor`, short ones kept, a ramp between.
    Llama3 {
        /// The divisor of long wavelengths.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are long.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are short.
        high_freq_factor: f64,
        /// The context that the model was trained on, in tokens.
        original_context: f64,
    },
    /// YaRN (Peng et al. 2023): a ramp over dimensions between interpolated and kept angles, and
    /// a factor on cos and sin.
    Yarn {
        /// The new context divided by the trained context.
        factor: f64,
        /// The context that the model was trained on, in tokens.
        original_context: f64,
        /// Rotations above which a dimension is kept; usually 32.
        beta_fast: f64,
        /// Rotations below which a dimension is interpolated; usually 1.
        beta_slow: f64,
        /// The factor on cos and sin; `0.1 ln(factor) + 1` in the paper.
        attention_factor: f64,
    },
}

/// How the angle of a pair follows from a token's position.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeSpec {
    /// Elements of a head that are rotated; even.
    pub n_rot: usize,
    /// The base of the frequencies: pair `i` is rotated by `base^(-2i / n_rot)` per token.
    pub base: f64,
    /// The change for long contexts.
    pub scaling: RopeScaling,
    /// Divisors of the frequencies, one for each pair (`rope_freqs.weight`), or none.
    pub freq_factors: Option<Vec<f32>>,
}

impl RopeSpec {
    /// Unscaled angles.
    pub fn new(n_rot: usize, base: f64) -> Self {
        Self {
            n_rot,
            base,
            scaling: RopeScaling::None,
            freq_factors: None,
        }
    }

    /// Elements of a table row: cos and sin of each pair.
    pub fn row_len(&self) -> usize {
        self.n_rot / 2 * 2
    }

    /// The angle of each pair per token, in radians, and the factor on cos and sin.
    pub fn frequencies(&self) -> (Vec<f64>, f64) {
        let n_rot = self.n_rot as f64;
        let frequencies = (0..self.n_rot / 2)
            .map(|i| {
                let plain = self.base.powf(-2.0 * i as f64 / n_rot);
                let factors = self.freq_factors.as_deref().unwrap_or_default();
                let factor = factors.get(i).copied().map_or(1.0, f64::from);
                self.scaled(i, plain / factor)
            })
            .collect();
        let magnitude = match self.scaling {
            RopeScaling::Yarn {
                attention_factor, ..
            } => attention_factor,
            _ => 1.0,
        };
        (frequencies, magnitude)
    }

    fn scaled(&self, pair: usize, frequency: f64) -> f64 {
        match self.scaling {
            RopeScaling::None => frequency,
            RopeScaling::Linear { factor } => frequency / factor,
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context,
            } => {
                let rotations = original_context * frequency / std::f64::consts::TAU;
                let width = high_freq_factor - low_freq_factor;
                // A ramp of no width is a step.
                let ramp = if width > 0.0 {
                    (rotations - low_freq_factor) / width
                } else {
                    if rotations < low_freq_factor {
                        0.0
                    } else {
                        1.0
                    }
                };
                mix(frequency / factor, frequency, ramp)
            }
            RopeScaling::Yarn {
                factor,
                original_context,
                beta_fast,
                beta_slow,
                ..
            } => {
                // The dimension whose wavelength turns `rotations` times in the original context.
                let dimension = |rotations: f64| {
                    let wavelength = original_context / (rotations * std::f64::consts::TAU);
                    self.n_rot as f64 * wavelength.ln() / (2.0 * self.base.ln())
                };
                let last = self.n_rot as f64 - 1.0;
                let low = dimension(beta_fast).floor().max(0.0);
                let high = dimension(beta_slow).ceil().min(last);
                let ramp = (pair as f64 - low) / (high - low).max(0.001);
                mix(frequency, frequency / factor, ramp)
            }
        }
    }

    /// The angles, for filling tables.
    pub fn angles(&self) -> RopeAngles {
        let (frequencies, magnitude) = self.frequencies();
        RopeAngles {
            frequencies,
            magnitude,
        }
    }
}

/// The angles of a [`RopeSpec`], computed once for any number of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeAngles {
    /// Radians per token of each pair.
    frequencies: Vec<f64>,
    /// The factor on cos and sin.
    magnitude: f64,
}

impl RopeAngles {
    /// Elements of a table row: cos and sin of each pair.
    pub fn row_len(&self) -> usize {
        self.frequencies.len() * 2
    }

    /// Writes cos and sin of every pair for each position into `table`, row by row, computed in
    /// f64. `table` has [`row_len`](Self::row_len) elements for each position; further elements
    /// are left alone.
    pub fn fill_table(&self, positions: &[i32], table: &mut [f32]) {
        let rows = table.chunks_exact_mut(self.row_len().max(1));
        for (&position, row) in positions.iter().zip(rows) {
            for (pair, frequency) in row.chunks_exact_mut(2).zip(&self.frequencies) {
                let (sin, cos) = (f64::from(position) * frequency).sin_cos();
                pair[0] = (cos * self.magnitude) as f32;
                pair[1] = (sin * self.magnitude) as f32;
            }
        }
    }
}

/// From `a` at ramp 0 (and below) to `b` at ramp 1 (and above).
fn mix(a: f64, b: f64, ramp: f64) -> f64 {
    let ramp = ramp.clamp(0.0, 1.0);
    a * (1.0 - ramp) + b * ramp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_scaling_keeps_short_and_divides_long_wavelengths() {
        let mut spec = RopeSpec::new(128, 500_000.0);
        let (plain, _) = spec.frequencies();
        spec.scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192.0,
        };
        let (scaled, magnitude) = spec.frequencies();
        assert_eq!(scaled[0], plain[0]);
        assert_eq!(scaled[63], plain[63] / 8.0);
        assert_eq!(magnitude, 1.0);
    }

    #[test]
    fn llama3_scaling_without_a_ramp_is_a_step() {
        let mut spec = RopeSpec::new(8, 10_000.0);
        let (plain, _) = spec.frequencies();
        // The first pair turns once in this context exactly, on both sides of the ramp.
        for high_freq_factor in [1.0, 0.5] {
            spec.scaling = RopeScaling::Llama3 {
                factor: 8.0,
                low_freq_factor: 1.0,
                high_freq_factor,
                original_context: std::f64::consts::TAU,
            };
            let (scaled, _) = spec.frequencies();
            assert_eq!(scaled[0], plain[0]);
            assert_eq!(scaled[1], plain[1] / 8.0);
        }
    }

    #[test]
    fn yarn_interpolates_slow_dimensions_only() {
        let mut spec = RopeSpec::new(64, 10_000.0);
        let (plain, _) = spec.frequencies();
        spec.scaling = RopeScaling::Yarn {
            factor: 4.0,
            original_context: 2048.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: 1.25,
        };
        let (scaled, magnitude) = spec.frequencies();
        assert_eq!(scaled[0], plain[0]);
        assert_eq!(scaled[31], plain[31] / 4.0);
        assert_eq!(magnitude, 1.25);
        let mut table = vec![0.0; 64];
        spec.angles().fill_table(&[0], &mut table);
        assert_eq!(table[..2], [1.25, 0.0]);
    }
}
