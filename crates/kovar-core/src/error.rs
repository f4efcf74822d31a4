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
    /// A block dtype where a plain dtype is needed.
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
    /// The byte slice does not have the size of the elements.
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
    /// An operand with a dtype that the operation does not take.
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
    /// A result with a dtype that the operation does not give.
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
    /// An operand with a rank that the operation does not take.
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
    /// Two operands whose dims do not match.
    #[error("{op}: operand `{operand}` has dims {found}, `{other}` has {other_dims}: {rule}")]
    OperandDims {
        /// The operation.
        op: &'static str,
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// Its dims.
        found: Dims,
        /// The operand that it is compared with.
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
    /// An operation that needs a destination was applied without one.
    #[error("{op} needs a destination to write into")]
    NeedsDestination {
        /// The operation.
        op: &'static str,
    },
    /// A destination on a read-only storage, or one that covers an element twice.
    #[error("{op}: the destination on storage `{storage}` {reason}")]
    NotWritable {
        /// The operation.
        op: &'static str,
        /// The storage's name.
        storage: String,
        /// Why.
        reason: &'static str,
    },
    /// A destination that overlaps an operand in a way that the operation does not support.
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
        /// Whether the operation supports this operand in place.
        in_place: bool,
    },
    /// An updated operand that overlaps another operand or the destination.
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
    /// A second storage with the same name and kind.
    #[error("the graph already has the {kind} `{name}`")]
    DuplicateName {
        /// The name.
        name: String,
        /// The storage's kind, in lower case.
        kind: &'static str,
    },
    /// A run-time scalar whose maximum is negative.
    #[error("scalar `{name}` has the maximum {max}, it must be at least 0")]
    ScalarMax {
        /// The scalar's name.
        name: String,
        /// The maximum asked for.
        max: i32,
    },
    /// An id without a value or scalar in this graph.
    #[error("{what} {index} does not exist in this graph")]
    UnknownId {
        /// "value" or "scalar".
        what: &'static str,
        /// The id's index.
        index: usize,
    },
    /// An output that is not a result on a temporary storage.
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

/// Why a call to a device failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device cannot allocate memory of this size.
    #[error("{device}: out of memory allocating {requested} bytes for {what}")]
    OutOfMemory {
        /// The device's id.
        device: String,
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        requested: usize,
    },
    /// The device stopped working and cannot be used any more.
    #[error("{device}: device lost: {reason}")]
    Lost {
        /// The device's id.
        device: String,
        /// The driver's message.
        reason: String,
    },
    /// The device's driver or compiler refused a call: a fault of the backend or the driver, not of
    /// its user.
    #[error("{device}: {what} was refused: {message}")]
    Refused {
        /// The device's id.
        device: String,
        /// The call or the kernel.
        what: String,
        /// The driver's message.
        message: String,
    },
    /// Work that ended by the driver's report but did not write its end mark. The bytes that it
    /// writes are undefined.
    #[error("{device}: {what} ended without its end mark")]
    Unfinished {
        /// The device's id.
        device: String,
        /// The work.
        what: String,
    },
    /// A range outside its buffer.
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
    /// Memory or a program of another device, or memory of the wrong kind, such as a prepared
    /// weight where plain bytes are needed.
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
    /// A storage without a binding, or whose memory is too small.
    #[error("{device}: storage `{storage}` is not bound to memory of its size")]
    Unbound {
        /// The device's id.
        device: String,
        /// The storage's name.
        storage: String,
    },
    /// A result whose bytes overlap an operand on another storage.
    #[error("{device}: {op}: storage `{result}` is bound to bytes of operand storage `{operand}`")]
    Aliased {
        /// The device's id.
        device: String,
        /// The operation.
        op: &'static str,
        /// The name of the result's storage.
        result: String,
        /// The name of the operand's storage.
        operand: String,
    },
    /// A weight with a wrong number of bytes.
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
    /// A run-time scalar of a launch that is missing or out of range.
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
        /// The time waited, in seconds.
        seconds: f64,
    },
}
