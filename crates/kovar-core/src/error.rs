//! Errors of the core.

use crate::{DType, Dims};

/// A dtype name that kovar does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{name}`")]
pub struct UnknownDType {
    /// The name as given.
    pub name: String,
}

/// Why a row of elements could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A block dtype where elements that stand on their own are wanted.
    #[error("{dtype} is not a plain dtype")]
    NotPlain {
        /// The dtype asked for.
        dtype: DType,
    },
    /// The element count is not a whole number of blocks.
    #[error("{elements} elements are not whole {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// The dtype asked for.
        dtype: DType,
        /// Elements given.
        elements: usize,
    },
    /// The byte slice does not have the size of that many elements.
    #[error("{elements} {dtype} elements take {expected} bytes, the slice has {actual}")]
    WrongSize {
        /// The dtype asked for.
        dtype: DType,
        /// Elements given.
        elements: usize,
        /// Bytes that they take.
        expected: usize,
        /// Bytes of the slice.
        actual: usize,
    },
}

/// Why a graph could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A wrong number of operands.
    #[error("{op} takes {expected} operands, {found} were given")]
    Arity {
        /// The operation.
        op: &'static str,
        /// What it takes, such as "2" or "1 to 2".
        expected: String,
        /// Operands given.
        found: usize,
    },
    /// An operand of a dtype that the operation does not take.
    #[error(
        "{op}: operand `{operand}` is {found}, the operation takes {}",
        list(allowed)
    )]
    OperandDType {
        /// The operation.
        op: &'static str,
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// Its dtype.
        found: DType,
        /// The dtypes that the operation takes there.
        allowed: &'static [DType],
    },
    /// A result of a dtype that the operation does not give.
    #[error(
        "{op}: the result is to be {found}, the operation gives {}",
        list(allowed)
    )]
    ResultDType {
        /// The operation.
        op: &'static str,
        /// The dtype asked for.
        found: DType,
        /// The dtypes that the operation gives.
        allowed: &'static [DType],
    },
    /// An operand of a rank that the operation does not take.
    #[error("{op}: operand `{operand}` has dims {found}, the operation takes {expected}")]
    OperandRank {
        /// The operation.
        op: &'static str,
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// Its dims.
        found: Dims,
        /// The form that it should have, such as "[batch, tokens, heads, head_dim]".
        expected: &'static str,
    },
    /// Two operands whose dims do not go together.
    #[error("{op}: operand `{operand}` has dims {found}, `{other}` has {other_dims}: {rule}")]
    OperandDims {
        /// The operation.
        op: &'static str,
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// Its dims.
        found: Dims,
        /// The operand that it is held against.
        other: &'static str,
        /// That operand's dims.
        other_dims: Dims,
        /// What must hold.
        rule: &'static str,
    },
    /// An attribute outside its range.
    #[error("{op}: {attribute} is {value}, it must be {rule}")]
    Attribute {
        /// The operation.
        op: &'static str,
        /// The attribute's name.
        attribute: &'static str,
        /// Its value.
        value: f64,
        /// The range.
        rule: &'static str,
    },
    /// A destination whose dtype or dims are not the result's.
    #[error("{op}: the destination is {found_dtype} {found}, the result is {dtype} {dims}")]
    Destination {
        /// The operation.
        op: &'static str,
        /// The destination's dtype.
        found_dtype: DType,
        /// The destination's dims.
        found: Dims,
        /// The result's dtype.
        dtype: DType,
        /// The result's dims.
        dims: Dims,
    },
    /// An operation that writes into a given value was asked for a fresh one.
    #[error("{op} needs a destination to write into")]
    NeedsDestination {
        /// The operation.
        op: &'static str,
    },
    /// A destination on a storage that is read-only, or that names an element twice.
    #[error("{op}: the destination on storage `{storage}` {reason}")]
    NotWritable {
        /// The operation.
        op: &'static str,
        /// The storage's name.
        storage: String,
        /// Why.
        reason: &'static str,
    },
    /// A destination that overlaps an operand in a way the operation cannot work in.
    #[error(
        "{op}: the destination overlaps operand `{operand}` on storage `{storage}`; {}",
        if *in_place { "in place, both must be the same window" } else { "this operand cannot be overwritten" }
    )]
    Overlap {
        /// The operation.
        op: &'static str,
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// The storage's name.
        storage: String,
        /// Whether the operation could work in place on this operand.
        in_place: bool,
    },
    /// An operand that the operation updates and that overlaps another one or the destination.
    #[error(
        "{op}: operand `{operand}`, which is updated, overlaps `{other}` on storage `{storage}`"
    )]
    UpdateOverlap {
        /// The operation.
        op: &'static str,
        /// The updated operand's name in the operation's documentation.
        operand: &'static str,
        /// The other operand's name, or "destination".
        other: &'static str,
        /// The storage's name.
        storage: String,
    },
    /// A view that does not exist.
    #[error("{view} of a {dtype} value of dims {dims} and strides {strides}: {reason}")]
    View {
        /// The view asked for, with its arguments.
        view: String,
        /// The value's dtype.
        dtype: DType,
        /// The value's dims.
        dims: Dims,
        /// The value's strides, in elements.
        strides: Dims,
        /// Why there is none.
        reason: &'static str,
    },
    /// A tensor that is too large to address, has too many dims or rows of partial blocks.
    #[error("tensor `{name}`, {dtype} {dims:?}: {reason}")]
    Tensor {
        /// The storage's name.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// Its dims as given.
        dims: Vec<usize>,
        /// What is wrong.
        reason: &'static str,
    },
    /// A second storage of the same name and kind.
    #[error("the graph already has a {kind} named `{name}`")]
    DuplicateName {
        /// The name.
        name: String,
        /// The storage's kind, in lower case.
        kind: &'static str,
    },
    /// A run-time scalar without a value that a run may give.
    #[error("scalar `{name}` has the maximum {max}, it must be at least 0")]
    ScalarMax {
        /// The scalar's name.
        name: String,
        /// The maximum asked for.
        max: i32,
    },
    /// An id that belongs to no value or scalar of this graph.
    #[error("{what} {index} does not exist in this graph")]
    UnknownId {
        /// "value" or "scalar".
        what: &'static str,
        /// The id's index.
        index: usize,
    },
    /// An output was named that is not a fresh result.
    #[error("output `{name}` must lie on a temporary storage, it lies on {kind} `{storage}`")]
    NotAnOutput {
        /// The name asked for.
        name: String,
        /// The storage's kind.
        kind: &'static str,
        /// The storage's name.
        storage: String,
    },
}

fn list(dtypes: &[DType]) -> String {
    dtypes
        .iter()
        .map(|dtype| dtype.name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why a device could not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No memory of that size.
    #[error("{device}: out of memory allocating {requested} bytes for {what}")]
    OutOfMemory {
        /// The device's id.
        device: String,
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        requested: usize,
    },
    /// The device stopped working; it cannot be used any more.
    #[error("{device}: device lost: {reason}")]
    Lost {
        /// The device's id.
        device: String,
        /// What the driver said.
        reason: String,
    },
    /// What was asked is against the rules of the device's driver or compiler: a fault of the
    /// backend or the driver, not of its user.
    #[error("{device}: {what} was refused: {message}")]
    Refused {
        /// The device's id.
        device: String,
        /// What was asked: the call, the kernel.
        what: String,
        /// What the driver said.
        message: String,
    },
    /// Work that the driver reports as ended, but that did not write its end mark. What it should
    /// have written is undefined.
    #[error("{device}: {what} ended without its end mark")]
    Unfinished {
        /// The device's id.
        device: String,
        /// The work.
        what: String,
    },
    /// A range that is outside its buffer.
    #[error("{device}: {what} of bytes {offset}..{offset}+{len} of a buffer of {buffer_len} bytes")]
    OutOfRange {
        /// The device's id.
        device: String,
        /// The call.
        what: &'static str,
        /// The first byte asked for.
        offset: usize,
        /// Bytes asked for.
        len: usize,
        /// The buffer's size.
        buffer_len: usize,
    },
    /// Memory or a program of another device, or a prepared weight where plain bytes are needed.
    #[error("{device}: {what} was given memory or a program that is not this device's")]
    Foreign {
        /// The device's id.
        device: String,
        /// The call.
        what: &'static str,
    },
    /// A node that the device does not support.
    #[error("{device}: {reason}")]
    Unsupported {
        /// The device's id.
        device: String,
        /// Why.
        reason: crate::backend::Reason,
    },
    /// A node that uses a storage without a binding, or one whose memory is too small.
    #[error("{device}: storage `{storage}` is not bound to memory of its size")]
    Unbound {
        /// The device's id.
        device: String,
        /// The storage's name.
        storage: String,
    },
    /// A node whose result lies on bytes of an operand on another storage.
    #[error("{device}: {op}: storage `{result}` is bound to bytes of operand storage `{operand}`")]
    Aliased {
        /// The device's id.
        device: String,
        /// The operation.
        op: &'static str,
        /// The name of the storage that it writes.
        result: String,
        /// The name of the operand's storage.
        operand: String,
    },
    /// A weight whose bytes do not have its size.
    #[error("{device}: weight `{weight}` takes {expected} bytes, {found} were given")]
    WeightSize {
        /// The device's id.
        device: String,
        /// The weight's name.
        weight: String,
        /// Bytes that it takes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A launch without all of its run-time scalars, or with one out of its range.
    #[error("{device}: scalar {index} is {value:?}, it must be between 0 and {max}")]
    Scalar {
        /// The device's id.
        device: String,
        /// The scalar's index.
        index: usize,
        /// The value given, if any.
        value: Option<i32>,
        /// The largest value allowed.
        max: i32,
    },
    /// Work that did not finish in time.
    #[error("{device}: {what} did not finish within {seconds} s")]
    TimedOut {
        /// The device's id.
        device: String,
        /// The work.
        what: String,
        /// How long was waited.
        seconds: f64,
    },
}
