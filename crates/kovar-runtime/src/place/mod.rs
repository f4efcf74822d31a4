//! Which device owns each storage of a graph.
//!
//! [`liveness`] finds the needed nodes, [`classes`] the storages that must be on one device
//! together, and [`placement`] chooses a device for each: by the user's [`pins`], by [`preference`],
//! or by the estimated [`cost`].

pub(crate) mod classes;
mod cost;
mod error;
mod homes;
mod inputs;
mod layer;
pub(crate) mod liveness;
mod pattern;
mod pins;
pub(crate) mod placement;
mod policy;
mod preference;

pub use error::{PlaceError, Refusal, Refusals};
pub use homes::{Homes, Pin};
pub(crate) use inputs::Inputs;
pub use layer::layer_of;
pub use pattern::Pattern;
pub use pins::{PinConflict, RejectedPin};
pub use policy::Policy;
pub use preference::{Preference, Thresholds};
