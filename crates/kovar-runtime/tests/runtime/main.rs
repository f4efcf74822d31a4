//! Tests of the passes, of plans and of sessions, on a simulated device.

mod check;
mod interpreter;
mod liveness;
mod memory;
mod placement;
mod plan;
mod properties;
mod segment;
mod session;
mod sim;
