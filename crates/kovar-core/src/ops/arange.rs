//! An arithmetic progression.
//!
//! No model calls it yet; it is for position ids of text encoders.

use super::Op;
use super::dtypes::PROGRESSIONS;
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[i] = start + i * step` for `i < n`.
///
/// - operands: none.
/// - result: `dtype`, `[n]`, integers computed exactly, floats in f64 and rounded
///   once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arange {
    /// The first element; finite, for integers an integer.
    pub start: f64,
    /// The difference of neighbours; finite, for integers an integer.
    pub step: f64,
    /// How many elements. All of them must be in the range of the dtype.
    pub n: usize,
    /// F32, F64, I32 or I64.
    pub dtype: DType,
}

impl Arange {
    /// Element `i`.
    fn at(&self, i: usize) -> f64 {
        self.start + i as f64 * self.step
    }
}

impl Rules for Arange {
    fn signature(&self) -> Signature {
        Signature::new("arange", &[])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        operands.result(self.dtype, PROGRESSIONS)?;
        let last = self.at(self.n.saturating_sub(1));
        let (fits, rule): (fn(f64) -> bool, _) = match self.dtype {
            DType::F32 => (
                |value| value.abs() <= f32::MAX.into(),
                "within the range of F32",
            ),
            DType::I32 => (
                |value| f64::from(value as i32) == value,
                "an integer of 32 bits",
            ),
            // f64 lacks some integers beyond.
            DType::I64 => (
                |value| value.fract() == 0.0 && value.abs() < 2f64.powi(53),
                "an integer of a magnitude below 2^53",
            ),
            _ => (f64::is_finite, "finite"),
        };
        operands.attribute(fits(self.start), "start", self.start, rule)?;
        // A single element, or none, has no neighbour.
        operands.attribute(self.step.is_finite(), "step", self.step, "finite")?;
        if self.dtype.is_integer() {
            let whole = self.step.fract() == 0.0;
            operands.attribute(whole, "step", self.step, "an integer")?;
        }
        operands.attribute(fits(last), "the last element", last, rule)?;
        Ok(TensorSpec {
            dtype: self.dtype,
            dims: Dims::from_fn(1, |_| self.n),
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(2)
    }
}

impl Graph {
    /// Appends [`Arange`].
    pub fn arange(
        &mut self,
        start: f64,
        step: f64,
        n: usize,
        dtype: DType,
    ) -> Result<ValueId, GraphError> {
        let op = Arange {
            start,
            step,
            n,
            dtype,
        };
        self.apply(Op::from(op), &[])
    }
}
