//! Elementwise operations on two operands.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count, kinds};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

kinds! {
    /// Which elementwise operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    BinaryKind {
        /// `a + b`
        Add => "add",
        /// `a - b`
        Sub => "sub",
        /// `a * b`
        Mul => "mul",
        /// `a / b`, as IEEE 754 has it for zeros.
        Div => "div",
    }
}

/// `y = a op b`, computed in f32.
///
/// - `a`: F32, F16 or BF16, any dims.
/// - `b`: F32, F16 or BF16, dims that broadcast to those of `a`.
/// - result: dtype and dims of `a`. In place on either (on `b` if nothing of it is broadcast).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Which operation.
    pub kind: BinaryKind,
}

impl Rules for Binary {
    fn signature(&self) -> Signature {
        let classes: &[OpClass] = match self.kind {
            BinaryKind::Add => &[OpClass::Elementwise, OpClass::Add],
            BinaryKind::Mul => &[OpClass::Elementwise, OpClass::Mul],
            BinaryKind::Sub | BinaryKind::Div => &[OpClass::Elementwise],
        };
        Signature::new(self.kind.name(), &["a", "b"])
            .in_place(&[0, 1])
            .classes(classes)
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let a = operands.typed(0, FLOATS)?;
        operands.typed(1, FLOATS)?;
        operands.broadcasts(1, 0)?;
        Ok(TensorSpec::like(a))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output)
    }
}

impl Graph {
    /// Appends `a + b`.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
        let kind = BinaryKind::Add;
        self.apply(Op::from(Binary { kind }), &[a, b])
    }

    /// Appends `a - b`.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
        let kind = BinaryKind::Sub;
        self.apply(Op::from(Binary { kind }), &[a, b])
    }

    /// Appends `a * b`.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
        let kind = BinaryKind::Mul;
        self.apply(Op::from(Binary { kind }), &[a, b])
    }

    /// Appends `a / b`.
    pub fn div(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
        let kind = BinaryKind::Div;
        self.apply(Op::from(Binary { kind }), &[a, b])
    }
}
