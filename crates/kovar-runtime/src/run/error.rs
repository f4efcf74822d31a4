//! Why an action cannot be queued.

use kovar_core::error::DeviceError;

use crate::violation::Violation;

/// Why an action cannot be queued.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ActionError {
    #[error(transparent)]
    Invalid(#[from] Violation),
    #[error(transparent)]
    Device(#[from] DeviceError),
}
