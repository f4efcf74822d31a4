//! Placement, memory planning, plans and sessions of kovar.
//!
//! [`compile`] turns a [`Graph`](kovar_core::Graph) into a [`Plan`] for the devices of a
//! [`Session`], which holds the weights and the states that all its plans share. A plan is run any
//! number of times. The passes are modules of their own: [`liveness`], [`placement`],
//! [`segment`], [`memory`]; [`check`] verifies what they made.

mod arena;
pub mod check;
mod compile;
pub mod dependency;
pub mod error;
mod host_slice;
mod link;
pub mod liveness;
pub mod memory;
mod outputs;
pub mod placement;
mod plan;
mod plural;
mod ranges;
pub mod segment;
mod session;
mod states;
mod weights;

pub use compile::{Policy, compile};
pub use error::{CompileError, RunError, SessionError};
pub use host_slice::HostSlice;
pub use outputs::Outputs;
pub use placement::DeviceId;
pub use plan::{NodeKernel, Plan, PlanMemory};
pub use ranges::RangeSet;
pub use session::{DeviceUse, Session};
pub use states::StateInfo;
pub use weights::WeightInfo;
