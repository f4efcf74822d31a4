//! Errors of compilation and of runs.

use kovar_core::DType;
use kovar_core::error::DeviceError;

use crate::place::PlaceError;
use crate::session::{OverBudget, SessionError};

/// Why a graph cannot be compiled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph cannot be placed on the devices.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The session lacks a weight, has a weight or state of other dims, or is busy.
    #[error(transparent)]
    Session(SessionError),
    /// A device would hold more than its budget, although all nodes that other devices can run were
    /// moved to them. Nothing was allocated.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<SessionError> for CompileError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Device(error) => Self::Device(error),
            error => Self::Session(error),
        }
    }
}

/// Why a plan cannot be run, or its outputs cannot be read.
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
    /// A value that a run does not keep in memory on the observed device.
    #[error("a value of `{name}` cannot be accessed: {reason}")]
    NotInMemory {
        /// The storage's name.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// A slice that does not have the size of the value to read or replace.
    #[error("the value of `{name}` has {expected} bytes, the slice has {found}")]
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
    /// The observer cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
    /// The plan could not be bound to the session's activation memory after that memory grew.
    #[error("the plan could not be bound to the session's larger activation memory")]
    Relink(#[source] Box<CompileError>),
    /// The calling thread still holds the outputs of a run of this session.
    #[error("this thread still holds the outputs of the last run; drop them first")]
    Busy,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
