//! Why a session cannot do what it was asked to.

use kovar_core::error::DeviceError;
use kovar_core::{DType, Dims};

use crate::device::DeviceSet;
use crate::place::UnknownDevice;

/// Why a session cannot do what it was asked to.
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
    /// Homes on a device that the session does not have.
    #[error(transparent)]
    UnknownDevice(#[from] UnknownDevice),
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
    /// A weight that the session lacks.
    #[error("the session has no weight named `{name}`")]
    MissingWeight {
        /// The weight's name.
        name: String,
    },
    /// A weight, or a state of an earlier plan, that the session has with another dtype or other
    /// dims.
    #[error(
        "the graph takes {kind} `{name}` as {wanted_dtype} {wanted}, the session has it as \
         {found_dtype} {found}"
    )]
    Mismatch {
        /// The kind of storage.
        kind: &'static str,
        /// Its name.
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
    /// A state that no compiled plan has.
    #[error(
        "the session has no state named `{name}`; a state is made with the first plan that has it"
    )]
    UnknownState {
        /// The name.
        name: String,
    },
    /// Bytes that a state does not have.
    #[error("state `{name}` has {bytes} bytes; {len} bytes from byte {start} on are not all in it")]
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
    /// The calling thread still holds the outputs of a run of this session.
    #[error("this thread still holds the outputs of the last run; drop them first")]
    Busy,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
