//! Gated activations.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count, kinds};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

kinds! {
    /// Which activation gates.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    GluKind {
        /// `silu(gate) * up`, where `silu(v) = v / (1 + exp(-v))`.
        Swiglu => "swiglu",
        /// `gelu(gate) * up`, with the exact `gelu` of [`UnaryKind::Gelu`](super::UnaryKind::Gelu),
        /// that of the error function.
        Geglu => "geglu",
        /// `max(gate, 0) * up`
        Reglu => "reglu",
    }
}

/// `y = act(gate) * up` (Shazeer 2020), computed in f32.
///
/// - `gate`, `up`: F32, F16 or BF16, equal dims.
/// - result: dtype and dims of `gate`. In place on either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glu {
    /// Which activation.
    pub kind: GluKind,
}

impl Rules for Glu {
    fn signature(&self) -> Signature {
        Signature::new(self.kind.name(), &["gate", "up"])
            .in_place(&[0, 1])
            .classes(&[OpClass::Elementwise])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let gate = operands.typed(0, FLOATS)?;
        let up = operands.typed(1, FLOATS)?;
        operands.dims(1, 0, up.dims() == gate.dims(), "the dims must agree")?;
        Ok(TensorSpec::like(gate))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        let each = match self.kind {
            GluKind::Swiglu => 5,
            GluKind::Geglu => 9,
            GluKind::Reglu => 2,
        };
        count(output).saturating_mul(each)
    }
}

impl Graph {
    /// Appends `silu(gate) * up`.
    pub fn swiglu(&mut self, gate: ValueId, up: ValueId) -> Result<ValueId, GraphError> {
        let kind = GluKind::Swiglu;
        self.apply(Op::from(Glu { kind }), &[gate, up])
    }

    /// Appends `gelu(gate) * up`, with the exact `gelu`.
    pub fn geglu(&mut self, gate: ValueId, up: ValueId) -> Result<ValueId, GraphError> {
        let kind = GluKind::Geglu;
        self.apply(Op::from(Glu { kind }), &[gate, up])
    }

    /// Appends `max(gate, 0) * up`.
    pub fn reglu(&mut self, gate: ValueId, up: ValueId) -> Result<ValueId, GraphError> {
        let kind = GluKind::Reglu;
        self.apply(Op::from(Glu { kind }), &[gate, up])
    }
}
