//! Queueing the actions of a run on the devices.

mod executable;
mod in_flight;
mod wait;

pub(crate) use executable::{Bound, Executable};
pub(crate) use in_flight::{InFlightRun, InFlightRuns};
pub(crate) use wait::{wait_for, wait_until_idle};
