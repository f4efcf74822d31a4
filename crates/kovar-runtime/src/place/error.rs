//! Why a graph cannot be placed on the devices.

use std::fmt;

use kovar_core::backend::Reason;

use super::pins::RejectedPin;
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
    /// A pin that cannot be followed, where pins are strict.
    #[error(transparent)]
    RejectedPin(#[from] RejectedPin),
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
}
