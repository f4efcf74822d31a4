//! What each device runs, which bytes cross between devices and when, and where each storage lies
//! in memory.

pub(crate) mod fusion;
pub(crate) mod memory;
pub(crate) mod packing;
mod scheduler;
mod segment;
mod transfer;
mod weight_uses;

pub(crate) use scheduler::schedule;
pub(crate) use segment::Action;
pub use segment::{Lifetime, Replica, Schedule, Segment, Upload};
pub use transfer::{Copy, Limit};
pub(crate) use weight_uses::{WeightUses, weight_uses};
