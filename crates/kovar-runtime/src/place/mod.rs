//! Which device owns each storage of a graph.
//!
//! [`liveness`] finds the needed nodes, [`classes`] the storages that must be on one device
//! together, [`candidates`] the devices that the user leaves to them, and [`placement`] chooses one
//! by the estimated [`cost`].

pub(crate) mod candidates;
pub(crate) mod classes;
mod cost;
mod error;
mod homes;
mod inputs;
mod layer;
pub(crate) mod liveness;
mod pattern;
pub(crate) mod placement;
mod policy;

pub use error::{PinConflict, PlaceError, Refusal, Refusals, RejectedPin, UnknownDevice};
pub use homes::{Homes, Pin};
pub(crate) use inputs::Inputs;
pub use layer::layer_of;
pub use pattern::Pattern;
pub use policy::{Policy, Preference, Thresholds};
