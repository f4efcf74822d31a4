//! The properties that an operation declares, and the checks that operations share.

use std::ops::RangeInclusive;

use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ScalarId, Value, ValueId};
use crate::layout::Layout;
use crate::ops::{Op, dtypes};

pub(super) use dtypes::{FLOATS, PLAIN};

/// Declares the kinds of a family of operations: the enum, the list of its kinds, and the name of
/// the operation of each kind.
macro_rules! kinds {
    (
        $(#[$enum_meta:meta])*
        $Kind:ident {
            $($(#[$doc:meta])* $Variant:ident
                $({ $($(#[$attribute_doc:meta])* $attribute:ident = $typical:literal,)+ })?
                => $name:literal,)+
        }
    ) => {
        $(#[$enum_meta])*
        #[non_exhaustive]
        pub enum $Kind {
            $($(#[$doc])* $Variant $({ $($(#[$attribute_doc])* $attribute: f32,)+ })?,)+
        }

        impl $Kind {
            /// Every kind once; attributes have typical values.
            pub const ALL: &[Self] = &[$(Self::$Variant $({ $($attribute: $typical,)+ })?,)+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant $({ $($attribute: _,)+ })? => $name,)+
                }
            }
        }
    };
}
pub(super) use kinds;

/// The dtype and dims of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// The element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub dims: Dims,
}

impl TensorSpec {
    /// The dtype and dims of `value`.
    pub(super) fn like(value: &Value) -> Self {
        Self {
            dtype: value.dtype,
            dims: *value.dims(),
        }
    }
}

/// The work of one run of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point or integer operations; a multiply-add counts as two.
    pub flops: u64,
    /// Bytes of the operands that are read, each once.
    pub bytes_read: u64,
    /// Bytes of the result and of updated operands that are written.
    pub bytes_written: u64,
}

/// A kind of operation, for code that treats all operations of a kind in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpClass {
    /// Sums of products: matrix products, convolutions, attention.
    Product,
    /// Every element depends only on the elements of the operands at the same place.
    Elementwise,
    /// Elementwise on one operand.
    Unary,
    /// The sum of two operands.
    Add,
    /// The product of two operands, element by element.
    Mul,
    /// A norm over rows or groups, with factors.
    Norm,
    /// Rotary position embedding.
    Rope,
    /// Rows written by index.
    SetRows,
    /// The operand's elements as another dtype; its stored bytes if the dtype is the same.
    Copy,
}

/// What an operation is called, which operands it takes and how it treats them.
pub(super) struct Signature {
    /// The name in lower case.
    pub(super) name: &'static str,
    /// The operands' names in order, optional ones last. If there may be more operands than names,
    /// the last name stands for all from there on.
    pub(super) operands: &'static [&'static str],
    /// How many operands there may be.
    pub(super) arity: RangeInclusive<usize>,
    /// The operands that the result may overwrite, if it is the window of
    /// [`in_place_window`](Rules::in_place_window).
    pub(super) in_place: &'static [usize],
    /// The operands that are updated where they lie, beside the result.
    pub(super) updates: &'static [usize],
    /// Whether some bytes of the destination stay as they were.
    pub(super) writes_partially: bool,
    /// What kinds of operation it is.
    pub(super) classes: &'static [OpClass],
}

impl Signature {
    /// An operation that takes all of `operands` and writes the whole of a fresh result.
    pub(super) fn new(name: &'static str, operands: &'static [&'static str]) -> Self {
        Self {
            name,
            operands,
            arity: operands.len()..=operands.len(),
            in_place: &[],
            updates: &[],
            writes_partially: false,
            classes: &[],
        }
    }

    pub(super) fn arity(self, arity: RangeInclusive<usize>) -> Self {
        Self { arity, ..self }
    }

    pub(super) fn in_place(self, in_place: &'static [usize]) -> Self {
        Self { in_place, ..self }
    }

    pub(super) fn classes(self, classes: &'static [OpClass]) -> Self {
        Self { classes, ..self }
    }

    /// The name of operand `i`; the last one stands for all from there on.
    pub(super) fn operand_name(&self, i: usize) -> &'static str {
        let name = self.operands.get(i).or(self.operands.last());
        name.copied().unwrap_or("?")
    }
}

/// The operands of a node that is being built, and its destination if the caller gave one.
#[derive(Debug)]
pub struct Operands<'a> {
    op: &'a Op,
    values: &'a [&'a Value],
    destination: Option<&'a Value>,
}

impl<'a> Operands<'a> {
    /// Checks the number of operands of `op`.
    pub fn new(
        op: &'a Op,
        values: &'a [&'a Value],
        destination: Option<&'a Value>,
    ) -> Result<Self, GraphError> {
        let operands = Self {
            op,
            values,
            destination,
        };
        let arity = op.signature().arity;
        if arity.contains(&values.len()) {
            return Ok(operands);
        }
        Err(operands.wrong_number(match arity.into_inner() {
            (0, 0) => "no".to_owned(),
            (least, usize::MAX) => format!("{least} or more"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        }))
    }

    /// The error for another number of operands than `expected`.
    pub(super) fn wrong_number(&self, expected: impl Into<String>) -> GraphError {
        GraphError::Arity {
            op: self.op.name(),
            expected: expected.into(),
            found: self.values.len(),
        }
    }

    /// The destination that the caller gave.
    pub(super) fn destination(&self) -> Result<&'a Value, GraphError> {
        self.destination
            .ok_or(GraphError::NeedsDestination { op: self.op.name() })
    }

    /// Operand `i`, which exists by the arity check.
    pub(super) fn get(&self, i: usize) -> &'a Value {
        self.values[i]
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
            op: self.op.name(),
            operand: self.op.operand_name(i),
            found: value.dtype,
            allowed,
        })
    }

    /// Operand `i`, of the plain dtype of operand `other`.
    pub(super) fn typed_as(&self, i: usize, other: usize) -> Result<&'a Value, GraphError> {
        self.typed(i, dtypes::only(self.get(other).dtype))
    }

    /// Operand 0, floats in rows.
    pub(super) fn rows(&self) -> Result<&'a Value, GraphError> {
        let x = self.typed(0, FLOATS)?;
        self.rank(0, x.dims().rank() >= 1, "[.., n]")?;
        Ok(x)
    }

    /// Fails unless all operands but the first, the factors of a norm, are floats of `[n]`, which
    /// the error writes as `form`.
    pub(super) fn factors(
        &self,
        n: usize,
        form: &'static str,
        rule: &'static str,
    ) -> Result<(), GraphError> {
        for i in 1..self.values.len() {
            let factors = self.typed(i, FLOATS)?.dims();
            self.rank(i, factors.rank() == 1, form)?;
            self.dims(i, 0, factors[0] == n, rule)?;
        }
        Ok(())
    }

    /// Fails unless a result of `dtype` is among those `allowed`.
    pub(super) fn result(&self, dtype: DType, allowed: &'static [DType]) -> Result<(), GraphError> {
        if allowed.contains(&dtype) {
            return Ok(());
        }
        Err(GraphError::ResultDType {
            op: self.op.name(),
            found: dtype,
            allowed,
        })
    }

    /// Fails unless `holds`; the error says that operand `i` has not the form `expected`.
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
            op: self.op.name(),
            operand: self.op.operand_name(i),
            found: *self.get(i).dims(),
            expected,
        })
    }

    /// Fails unless `holds`; the error says that operands `i` and `other` break `rule`.
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
            op: self.op.name(),
            operand: self.op.operand_name(i),
            found: *self.get(i).dims(),
            other: self.op.operand_name(other),
            other_dims: *self.get(other).dims(),
            rule,
        })
    }

    /// Fails unless `holds`; the error says that an attribute breaks `rule`.
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
            op: self.op.name(),
            attribute,
            value,
            rule,
        })
    }

    /// Fails unless an attribute is finite.
    pub(super) fn finite(&self, attribute: &'static str, value: f32) -> Result<(), GraphError> {
        self.attribute(value.is_finite(), attribute, value.into(), "finite")
    }

    /// Fails unless the attribute `eps` is finite and not negative.
    pub(super) fn eps(&self, eps: f32) -> Result<(), GraphError> {
        let valid = eps.is_finite() && eps >= 0.0;
        self.attribute(valid, "eps", eps.into(), "finite and not negative")
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

/// The properties of an operation.
pub(super) trait Rules {
    /// What it is called, takes and is.
    fn signature(&self) -> Signature;

    /// The dtype and dims of the result.
    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError>;

    /// The layout that a result must have to overwrite operand `i`, which has layout `operand`; by
    /// default that layout.
    fn in_place_window(&self, i: usize, operand: &Layout) -> Option<Layout> {
        let in_place = self.signature().in_place.contains(&i);
        in_place.then_some(*operand)
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

    /// Floating-point operations of one run; by default none, as of operations that move elements.
    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        let _ = (inputs, output);
        0
    }

    /// Arithmetic and traffic of one run; by default every distinct element is read or written
    /// once, and those of updated operands both.
    fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        let updated = self.signature().updates.iter();
        let updated = updated.filter_map(|&i| inputs.get(i));
        let updated: u64 = updated.map(|value| touched_bytes(value)).sum();
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

/// Operations of a product of rows with a weight `[.., n, k]`, operand 0.
pub(super) fn product_flops(inputs: &[&Value], output: &Value) -> u64 {
    let k = inputs.first().map_or(0, |w| w.dims().from_end(0)) as u64;
    count(output).saturating_mul(k).saturating_mul(2)
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
