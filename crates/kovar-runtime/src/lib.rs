//! Placement, memory planning, plans and sessions of kovar.
//!
//! [`compile`] turns a [`Graph`](kovar_core::Graph) into a [`Plan`] for the devices of a
//! [`Session`], which holds the weights and the states that all its plans share. A plan is run any
//! number of times.
//!
//! The modules, each of which uses only those above it:
//!
//! | module | what it does |
//! |---|---|
//! | `intervals`, `device`, `rates` | sets of bytes; devices of a session; how fast devices are |
//! | `place` | needed nodes, alias classes, and the device that owns each storage |
//! | `schedule` | segments, copies between devices, fused groups, offsets in memory |
//! | `check` | verifies a schedule against the graph: follows every byte through it |
//! | `passes` | runs all of these; chooses the homes of weights and states |
//! | `run` | queues the actions of a run on the devices |
//! | `session` | devices, weights, states and activation memory |
//! | `plan` | compilation, plans, their outputs, forecasts and explanations |

#![forbid(unsafe_code)]

mod check;
mod device;
mod intervals;
mod passes;
mod place;
mod plan;
mod plural;
mod rates;
mod run;
mod schedule;
mod session;
mod violation;

pub use device::{DeviceId, DeviceSet};
pub use passes::{place_layers, place_states};
pub use place::{
    Homes, Pattern, Pin, PinConflict, PlaceError, Policy, Preference, Refusal, Refusals,
    RejectedPin, Thresholds, UnknownDevice, layer_of,
};
pub use plan::{
    CompileError, Forecast, Forecaster, FusedIn, HostSlice, NodeKernel, NodeReport,
    ObservedSegment, Observer, Outputs, PlacementReason, Plan, PlanMemory, RunError, compile,
    forecast,
};
pub use rates::{DeviceRates, LinkRates, MeasureError, Rates, measure};
pub use schedule::{Copy, Lifetime, Limit, Replica, Schedule, Segment, Upload};
pub use session::{DeviceUsage, OverBudget, Session, SessionError, StateInfo};
pub use violation::Violation;
