//! Errors of sessions, compilation and runs.

use std::fmt;

use kovar_core::backend::Reason;
use kovar_core::error::DeviceError;
use kovar_core::{DType, Dims};

use crate::check::Violation;
use crate::device::DeviceSet;
use crate::forecast::OverBudget;
use crate::pins::LostPin;

/// Why a session could not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A session without a device.
    #[error("a session needs a device, none was given")]
    NoDevices,
    /// Two devices of the same id.
    #[error("two devices have the id `{id}`")]
    DuplicateDevice {
        /// The id.
        id: String,
    },
    /// More devices than a session can have.
    #[error("a session can have {max} devices, {found} were given", max = DeviceSet::MAX)]
    TooManyDevices {
        /// Devices given.
        found: usize,
    },
    /// A home on a device that the session does not have.
    #[error("weights or states have their home on device {device}, the session has {devices}")]
    NoHome {
        /// The position of the home.
        device: usize,
        /// How many devices the session has.
        devices: usize,
    },
    /// A second weight of the same name.
    #[error("the session already has a weight named `{name}`")]
    DuplicateWeight {
        /// The name.
        name: String,
    },
    /// A weight of more than 6 dims, too many elements or rows of partial blocks.
    #[error("weight `{name}` cannot be {dtype} {dims:?}")]
    WeightShape {
        /// The weight's name.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// Its dims as given.
        dims: Vec<usize>,
    },
    /// A weight whose bytes do not have the size of its dtype and dims.
    #[error("weight `{name}`, {dtype} {dims}, takes {expected} bytes, {found} were given")]
    WeightSize {
        /// The weight's name.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// Its dims.
        dims: Dims,
        /// Bytes that they take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A state that no compiled plan has.
    #[error("the session has no state named `{name}`")]
    UnknownState {
        /// The name.
        name: String,
    },
    /// Bytes that do not have a state's size.
    #[error("state `{name}` has {expected} bytes, {found} were given")]
    StateSize {
        /// The state's name.
        name: String,
        /// Its size.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Bytes that a state does not have.
    #[error("state `{name}` has {bytes} bytes, not {len} from byte {start} on")]
    StateRange {
        /// The state's name.
        name: String,
        /// Its size.
        bytes: usize,
        /// The first byte asked for.
        start: usize,
        /// Bytes asked for.
        len: usize,
    },
    /// A plan that breaks an invariant: a defect of a pass.
    #[error("the plan is wrong: {0}")]
    Invalid(#[from] Violation),
    /// The calling thread still holds the outputs of a run of this session.
    #[error("the outputs of the last run are still held by this thread; drop them first")]
    Busy,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A device that cannot run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The device's id.
    pub device: String,
    /// Why.
    pub reason: Reason,
}

/// The devices that cannot run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, refusal) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", refusal.device, refusal.reason)?;
        }
        Ok(())
    }
}

/// Why a graph could not be compiled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A node reads bytes of this run before anything was written there.
    #[error("{op} (node {node}) reads `{storage}` as `{operand}` before anything is written there")]
    ReadBeforeWrite {
        /// The storage's name.
        storage: String,
        /// The operation.
        op: &'static str,
        /// The node's index.
        node: usize,
        /// The operand's name.
        operand: &'static str,
    },
    /// An output that no node writes.
    #[error("nothing writes the output `{name}`")]
    OutputNotWritten {
        /// The output's name.
        name: String,
    },
    /// A weight that the session lacks.
    #[error("the session has no weight named `{name}`")]
    MissingWeight {
        /// The weight's name.
        name: String,
    },
    /// A weight that the session has with another dtype or other dims.
    #[error(
        "the graph takes weight `{name}` as {wanted_dtype} {wanted}, the session has it as \
         {found_dtype} {found}"
    )]
    WeightMismatch {
        /// The weight's name.
        name: String,
        /// The graph's dtype.
        wanted_dtype: DType,
        /// The graph's dims.
        wanted: Dims,
        /// The session's dtype.
        found_dtype: DType,
        /// The session's dims.
        found: Dims,
    },
    /// A state that another plan of the session has with another dtype or other dims.
    #[error(
        "the graph has state `{name}` as {wanted_dtype} {wanted}, an earlier plan of the session \
         has it as {found_dtype} {found}"
    )]
    StateMismatch {
        /// The state's name.
        name: String,
        /// The graph's dtype.
        wanted_dtype: DType,
        /// The graph's dims.
        wanted: Dims,
        /// The earlier plan's dtype.
        found_dtype: DType,
        /// The earlier plan's dims.
        found: Dims,
    },
    /// A node that no device supports.
    #[error("{op} (node {node}, writing `{result}`) has no device: {refusals}")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The node's index.
        node: usize,
        /// The name of the storage that it writes.
        result: String,
        /// The devices that refuse it, and why.
        refusals: Refusals,
    },
    /// A pin that cannot be followed, where pins are strict.
    #[error(transparent)]
    LostPin(#[from] LostPin),
    /// A device's budget that cannot be kept even by moving to other devices what they can run.
    /// Nothing was taken.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// States (a context's caches, say) that exceed the device's memory. Nothing was taken.
    #[error(
        "state `{storage}` takes {bytes} bytes beside {others} bytes of other states, {device} has \
         {memory} bytes of memory; a smaller context takes less"
    )]
    StatesTooLarge {
        /// The storage's name.
        storage: String,
        /// Its size.
        bytes: usize,
        /// The size of the states made before it.
        others: usize,
        /// The device's id.
        device: String,
        /// The device's memory.
        memory: u64,
    },
    /// A storage larger than the largest buffer of its device.
    #[error("`{storage}` takes {bytes} bytes, the largest buffer of {device} has {max}")]
    TooLarge {
        /// The storage's name.
        storage: String,
        /// Its size, rounded up to the device's alignment.
        bytes: usize,
        /// The device's id.
        device: String,
        /// The largest buffer of the device.
        max: usize,
    },
    /// A plan that breaks an invariant: a defect of a pass.
    #[error("the plan is wrong: {0}")]
    Invalid(#[from] Violation),
    /// The calling thread still holds the outputs of a run of this session.
    #[error("the outputs of the last run are still held by this thread; drop them first")]
    Busy,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Why a plan could not be run, or its outputs not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An input that was not given.
    #[error("input `{name}` was not given")]
    MissingInput {
        /// The input's name.
        name: String,
    },
    /// A value that is not an input of the plan's graph.
    #[error("value {index} was given as an input but is not one of this plan")]
    UnknownInput {
        /// The value's index.
        index: usize,
    },
    /// An input that was given twice.
    #[error("input `{name}` was given twice")]
    DuplicateInput {
        /// The input's name.
        name: String,
    },
    /// Bytes that do not have an input's size.
    #[error("input `{name}` takes {expected} bytes, {found} were given")]
    InputSize {
        /// The input's name.
        name: String,
        /// Its size.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Elements of another dtype than the input's.
    #[error("input `{name}` is {dtype}, {found} elements were given")]
    InputDType {
        /// The input's name.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// The dtype given.
        found: DType,
    },
    /// A wrong number of run-time scalars.
    #[error("the plan takes {expected} run-time scalars, {found} were given")]
    ScalarCount {
        /// How many the plan takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// A run-time scalar outside its range.
    #[error("scalar `{name}` is {value}, it must be between 0 and {max}")]
    Scalar {
        /// The scalar's name.
        name: String,
        /// The value given.
        value: i32,
        /// The largest value allowed.
        max: i32,
    },
    /// A value that is neither an output nor a state of the plan's graph, or has gaps.
    #[error("value {index} cannot be read: {reason}")]
    NotReadable {
        /// The value's index.
        index: usize,
        /// Why.
        reason: &'static str,
    },
    /// A slice that does not have the size of the value to read.
    #[error("`{name}` has {expected} bytes to read, the slice has {found}")]
    OutputSize {
        /// The storage's name.
        name: String,
        /// The value's size in bytes.
        expected: usize,
        /// Bytes of the slice.
        found: usize,
    },
    /// A slice of another element type than the value to read.
    #[error("`{name}` is {dtype}, it was read as {asked}")]
    OutputDType {
        /// The storage's name.
        name: String,
        /// The value's dtype.
        dtype: DType,
        /// The dtype asked for.
        asked: DType,
    },
    /// The observer of the run broke it off.
    #[error("the run was cancelled")]
    Cancelled,
    /// The plan could not be compiled anew after the session's activation memory grew.
    #[error("the plan could not be moved to the session's larger memory")]
    Relink(#[source] Box<CompileError>),
    /// A plan that breaks an invariant: a defect of a pass.
    #[error("the plan is wrong: {0}")]
    Invalid(#[from] Violation),
    /// The calling thread still holds the outputs of a run of this session.
    #[error("the outputs of the last run are still held by this thread; drop them first")]
    Busy,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<crate::session::Held> for SessionError {
    fn from(_: crate::session::Held) -> Self {
        Self::Busy
    }
}

impl From<crate::session::Held> for CompileError {
    fn from(_: crate::session::Held) -> Self {
        Self::Busy
    }
}

impl From<crate::session::Held> for RunError {
    fn from(_: crate::session::Held) -> Self {
        Self::Busy
    }
}
