//! Why a graph cannot be placed on the devices.

use std::fmt;

use kovar_core::backend::Reason;

use crate::violation::Violation;

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

/// A pin that could not be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{pattern}` pins `{storage}` to {wanted}, but {op} (node {node}) cannot run there: {cause}"
)]
pub struct RejectedPin {
    /// The pin's pattern.
    pub pattern: String,
    /// The name of the storage that it matches.
    pub storage: String,
    /// The id of the device that it names.
    pub wanted: String,
    /// The operation of a node that has to run elsewhere.
    pub op: &'static str,
    /// The node's index.
    pub node: usize,
    /// Why.
    pub cause: PinConflict,
}

/// Why a pin cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinConflict {
    /// The device does not support the node.
    Unsupported(Reason),
    /// The node writes a storage that another pin places on another device.
    OtherPin {
        /// The storage's name.
        storage: String,
        /// The other pin's pattern.
        pattern: String,
        /// The id of its device.
        device: String,
    },
}

impl fmt::Display for PinConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinConflict::Unsupported(reason) => reason.fmt(f),
            PinConflict::OtherPin {
                storage,
                pattern,
                device,
            } => write!(
                f,
                "it writes `{storage}`, which `{pattern}` places on {device}"
            ),
        }
    }
}

/// Homes that name a device which the session does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a home, pin or budget names device {device}, the session has {devices}")]
pub struct UnknownDevice {
    /// The position of the device.
    pub device: usize,
    /// How many devices the session has.
    pub devices: usize,
}

/// Why a graph cannot be placed on the devices and scheduled, whatever a session holds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
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
    /// Homes on a device that is not there.
    #[error(transparent)]
    UnknownDevice(#[from] UnknownDevice),
    /// A pin that cannot be followed, where pins are strict.
    #[error(transparent)]
    RejectedPin(#[from] RejectedPin),
    /// A storage larger than the largest buffer of its device.
    #[error("`{storage}` takes {bytes} bytes, the largest buffer of {device} has {max}")]
    TooLarge {
        /// The storage's name.
        storage: String,
        /// The bytes that it takes there.
        bytes: usize,
        /// The device's id.
        device: String,
        /// The largest buffer of the device.
        max: usize,
    },
    /// A plan that breaks an invariant: a defect of a pass.
    #[error("the plan is wrong: {0}")]
    Invalid(#[from] Violation),
}
