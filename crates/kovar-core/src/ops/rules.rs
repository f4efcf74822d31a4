//! What an operation states about itself, and the checks that operations share.

use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ScalarId, Value, ValueId};
use crate::layout::Layout;
use crate::ops::{Op, dtypes};

pub(super) use dtypes::{FLOATS, PLAIN};

/// The dtype and dims of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// The element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub dims: Dims,
}

/// What one run of a node takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point or integer operations; a multiply-add counts as two.
    pub flops: u64,
    /// Bytes of the operands that are read, each once.
    pub bytes_read: u64,
    /// Bytes of the result and of updated operands that are written.
    pub bytes_written: u64,
}

/// The operands of a node in the making, and its destination if it has a given one.
#[derive(Debug)]
pub struct Operands<'a> {
    op: &'static str,
    names: &'static [&'static str],
    values: &'a [&'a Value],
    destination: Option<&'a Value>,
}

impl<'a> Operands<'a> {
    /// Checks the number of operands of `op`.
    pub fn new(
        op: &Op,
        values: &'a [&'a Value],
        destination: Option<&'a Value>,
    ) -> Result<Self, GraphError> {
        let rules = op.rules();
        let (arity, expected) = rules.arity();
        if !arity.contains(&values.len()) {
            return Err(GraphError::Arity {
                op: rules.name(),
                expected,
                found: values.len(),
            });
        }
        Ok(Self {
            op: rules.name(),
            names: rules.operands(),
            values,
            destination,
        })
    }

    /// The destination that the caller gave.
    pub(super) fn destination(&self) -> Result<&'a Value, GraphError> {
        self.destination
            .ok_or(GraphError::NeedsDestination { op: self.op })
    }

    /// Operand `i`, which the arity check has shown to exist.
    pub(super) fn get(&self, i: usize) -> &'a Value {
        self.values[i]
    }

    /// The name of operand `i`; the last one stands for all from there on.
    fn operand_name(&self, i: usize) -> &'static str {
        let name = self.names.get(i).or(self.names.last());
        name.copied().unwrap_or("?")
    }

    pub(super) fn optional(&self, i: usize) -> Option<&'a Value> {
        self.values.get(i).copied()
    }

    /// Operand `i`, of one of the `allowed` dtypes.
    pub(super) fn typed(
        &self,
        i: usize,
        allowed: &'static [DType],
    ) -> Result<&'a Value, GraphError> {
        let value = self.get(i);
        if allowed.contains(&value.dtype) {
            return Ok(value);
        }
        Err(GraphError::OperandDType {
            op: self.op,
            operand: self.operand_name(i),
            found: value.dtype,
            allowed,
        })
    }

    /// Operand `i`, of the plain dtype of operand `other`.
    pub(super) fn typed_as(&self, i: usize, other: usize) -> Result<&'a Value, GraphError> {
        self.typed(i, dtypes::only(self.get(other).dtype))
    }

    /// Fails unless a result of `dtype` is among those `allowed`.
    pub(super) fn result(&self, dtype: DType, allowed: &'static [DType]) -> Result<(), GraphError> {
        if allowed.contains(&dtype) {
            return Ok(());
        }
        Err(GraphError::ResultDType {
            op: self.op,
            found: dtype,
            allowed,
        })
    }

    /// Fails unless `holds` with operand `i` not having the form `expected`.
    pub(super) fn rank(
        &self,
        i: usize,
        holds: bool,
        expected: &'static str,
    ) -> Result<(), GraphError> {
        if holds {
            return Ok(());
        }
        Err(GraphError::OperandRank {
            op: self.op,
            operand: self.operand_name(i),
            found: *self.get(i).dims(),
            expected,
        })
    }

    /// Fails unless `holds` with operands `i` and `other` breaking `rule`.
    pub(super) fn dims(
        &self,
        i: usize,
        other: usize,
        holds: bool,
        rule: &'static str,
    ) -> Result<(), GraphError> {
        if holds {
            return Ok(());
        }
        Err(GraphError::OperandDims {
            op: self.op,
            operand: self.operand_name(i),
            found: *self.get(i).dims(),
            other: self.operand_name(other),
            other_dims: *self.get(other).dims(),
            rule,
        })
    }

    /// Fails unless `holds` with an attribute out of its range.
    pub(super) fn attribute(
        &self,
        holds: bool,
        attribute: &'static str,
        value: f64,
        rule: &'static str,
    ) -> Result<(), GraphError> {
        if holds {
            return Ok(());
        }
        Err(GraphError::Attribute {
            op: self.op,
            attribute,
            value,
            rule,
        })
    }

    /// Fails unless operand `i` broadcasts to the dims of operand `to`.
    pub(super) fn broadcasts(&self, i: usize, to: usize) -> Result<(), GraphError> {
        let fits = self.get(i).layout.broadcast_to(*self.get(to).dims());
        self.dims(
            i,
            to,
            fits.is_some(),
            "each size must be the same or 1, counted from the last",
        )
    }
}

/// What an operation states about itself.
pub(super) trait Rules {
    /// The name in lower case.
    fn name(&self) -> &'static str;

    /// The operands' names in order, optional ones last. Of operations that take any number of
    /// operands, the last name stands for all from there on.
    fn operands(&self) -> &'static [&'static str];

    /// How many operands there may be, in numbers and in words.
    fn arity(&self) -> (std::ops::RangeInclusive<usize>, &'static str);

    /// The dtype and dims of the result.
    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError>;

    /// Whether the result may overwrite operand `i`, if it is the window of
    /// [`in_place_window`](Self::in_place_window).
    fn in_place(&self, i: usize) -> bool {
        let _ = i;
        false
    }

    /// The layout that a result must have to overwrite operand `i` of layout `operand`; by default
    /// the same one.
    fn in_place_window(&self, i: usize, operand: &Layout) -> Option<Layout> {
        self.in_place(i).then_some(*operand)
    }

    /// Whether the operation updates operand `i` where it lies, beside writing its result.
    fn updates(&self, i: usize) -> bool {
        let _ = i;
        false
    }

    /// Whether the operation leaves some bytes of its destination as they were.
    fn writes_partially(&self) -> bool {
        false
    }

    /// The dimension of operand `i` of which only the first rows are read, and how many.
    fn valid_rows(&self, i: usize) -> Option<(usize, ScalarId)> {
        let _ = i;
        None
    }

    /// The run-time scalar that the operation reads.
    fn scalar(&self) -> Option<ScalarId> {
        None
    }

    /// Floating-point operations of one run.
    fn flops(&self, inputs: &[&Value], output: &Value) -> u64;

    /// Arithmetic and traffic of one run; by default every distinct element once, those of
    /// updated operands twice.
    fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        let operands = inputs.iter().enumerate();
        let updated = operands.filter(|&(i, _)| self.updates(i));
        let updated: u64 = updated.map(|(_, value)| touched_bytes(value)).sum();
        Cost {
            flops: self.flops(inputs, output),
            bytes_read: total_bytes(inputs),
            bytes_written: touched_bytes(output).saturating_add(updated),
        }
    }
}

/// Bytes of the distinct elements that a value names.
pub(super) fn touched_bytes(value: &Value) -> u64 {
    let layout = &value.layout;
    let distinct = layout
        .dims()
        .iter()
        .zip(layout.strides().iter())
        .filter(|&(_, &stride)| stride != 0)
        .fold(1u64, |product, (&size, _)| {
            product.saturating_mul(size as u64)
        });
    let distinct = if layout.elements() == 0 { 0 } else { distinct };
    let blocks = distinct.div_ceil(value.dtype.block_len() as u64);
    blocks.saturating_mul(value.dtype.block_bytes() as u64)
}

/// Bytes of the distinct elements of several values.
pub(super) fn total_bytes(values: &[&Value]) -> u64 {
    let bytes = values.iter().map(|value| touched_bytes(value));
    bytes.fold(0, u64::saturating_add)
}

/// Elements of a value, for counting operations.
pub(super) fn count(value: &Value) -> u64 {
    value.layout.elements() as u64
}

/// A size for each dimension of operand `x` of `op`, as many as a value may have.
pub(super) fn per_dim(
    graph: &Graph,
    op: &'static str,
    x: ValueId,
    sizes: &[usize],
    expected: &'static str,
) -> Result<Dims, GraphError> {
    let found = *graph.value(x)?.dims();
    Dims::new(sizes).ok_or(GraphError::OperandRank {
        op,
        operand: "x",
        found,
        expected,
    })
}
