//! Placement, memory planning, plans and sessions of kovar.
//!
//! [`compile`] turns a [`Graph`](kovar_core::Graph) into a [`Plan`] for the devices of a
//! [`Session`], which holds the weights and the states that all its plans share. A plan is run any
//! number of times. The passes are modules of their own: [`liveness`] finds the needed nodes,
//! [`alias`] what must be on one device, [`placement`] the devices, [`segment`] the segments and the
//! copies between them, [`fusion`] what of a segment is one kernel, [`memory`] where each storage
//! lies; [`check`] and [`flow`] verify what they
//! made. Where devices have budgets, [`spread`](spread()) chooses homes before.

pub mod alias;
mod arena;
pub mod check;
mod compile;
mod cost;
mod device;
pub mod error;
mod explain;
mod favour;
mod flight;
pub mod flow;
mod forecast;
pub mod fusion;
mod holdings;
mod homes;
mod host_slice;
mod intervals;
mod link;
pub mod liveness;
pub mod memory;
mod near;
mod observe;
mod outputs;
mod pattern;
mod pins;
pub mod placement;
mod plan;
mod plural;
mod ranges;
mod rates;
pub mod segment;
mod session;
mod settle;
mod spread;
mod states;
mod transfer;
mod weights;

pub use compile::{Foresight, Policy, compile, forecast};
pub use device::{DeviceId, DeviceSet};
pub use error::{CompileError, RunError, SessionError};
pub use explain::{FusedIn, NodeReport, Why};
pub use favour::{Favour, Thresholds};
pub use forecast::{Forecast, OverBudget, PlanMemory};
pub use homes::{Homes, Pin};
pub use host_slice::HostSlice;
pub use near::near_readers;
pub use observe::{Evaluated, Observer};
pub use outputs::Outputs;
pub use pattern::Pattern;
pub use pins::{LostPin, LostTo};
pub use plan::{NodeKernel, Plan};
pub use ranges::RangeSet;
pub use rates::{DeviceRates, LinkRates, MeasureError, Rates, measure};
pub use session::{DeviceUse, Session};
pub use spread::{layer_of, spread};
pub use states::StateInfo;
pub use transfer::{Copy, Limit};
pub use weights::WeightInfo;
