//! Elementwise operations on one operand.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count, kinds};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

kinds! {
    /// Which elementwise operation.
    #[derive(Clone, Copy, Debug, PartialEq)]
    UnaryKind {
        /// `-x`
        Neg => "neg",
        /// `|x|`
        Abs => "abs",
        /// `x^2`
        Sqr => "sqr",
        /// `sqrt(x)`, NaN for negative numbers.
        Sqrt => "sqrt",
        /// `e^x`
        Exp => "exp",
        /// The natural logarithm: NaN for negative numbers, minus infinity for 0.
        Log => "log",
        /// `sin(x)`, `x` in radians.
        Sin => "sin",
        /// `cos(x)`, `x` in radians.
        Cos => "cos",
        /// `tanh(x)`
        Tanh => "tanh",
        /// `1 / (1 + e^-x)`
        Sigmoid => "sigmoid",
        /// `x / (1 + e^-x)` (Elfwing et al. 2018; also named swish).
        Silu => "silu",
        /// `x * Phi(x)` with the normal distribution function `Phi(x) = (1 + erf(x / sqrt(2))) / 2`
        /// (Hendrycks and Gimpel 2016): the exact form.
        Gelu => "gelu",
        /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`: the approximation that the same
        /// paper gives.
        GeluTanh => "gelu_tanh",
        /// `x / (1 + e^(-1.702 x))`: the paper's other approximation, that of CLIP.
        GeluQuick => "gelu_quick",
        /// `max(x, 0)`
        Relu => "relu",
        /// `max(x, 0)^2` (So et al. 2021).
        ReluSqr => "relu_sqr",
        /// `x` where `x >= 0`, else `slope * x`.
        LeakyRelu {
            /// The factor on negative numbers; finite.
            slope = 0.01,
        } => "leaky_relu",
        /// `ln(1 + e^x)`
        Softplus => "softplus",
        /// `x`, but `min` where it is less and `max` where it is greater.
        Clamp {
            /// The least result; minus infinity for none.
            min = -0.5,
            /// The greatest result, `min` at least; infinity for none.
            max = 1.25,
        } => "clamp",
    }
}

/// `y = f(x)`, computed in f32. NaN gives NaN.
///
/// - `x`: F32, F16 or BF16, any dims.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unary {
    /// Which operation.
    pub kind: UnaryKind,
}

impl Rules for Unary {
    fn signature(&self) -> Signature {
        Signature::new(self.kind.name(), &["x"])
            .in_place(&[0])
            .classes(&[OpClass::Elementwise, OpClass::Unary])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        match self.kind {
            UnaryKind::LeakyRelu { slope } => {
                operands.finite("slope", slope)?;
            }
            UnaryKind::Clamp { min, max } => {
                operands.attribute(!min.is_nan(), "min", min.into(), "a number")?;
                operands.attribute(min <= max, "max", max.into(), "`min` at least")?;
            }
            _ => {}
        }
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        let each = match self.kind {
            UnaryKind::Exp | UnaryKind::Log | UnaryKind::Sin | UnaryKind::Cos => 4,
            UnaryKind::Tanh | UnaryKind::Sigmoid | UnaryKind::Silu | UnaryKind::Softplus => 5,
            UnaryKind::Gelu | UnaryKind::GeluTanh | UnaryKind::GeluQuick => 8,
            _ => 1,
        };
        count(output).saturating_mul(each)
    }
}

impl Graph {
    /// Appends `f(x)`.
    pub fn unary(&mut self, x: ValueId, kind: UnaryKind) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Unary { kind }), &[x])
    }
}
