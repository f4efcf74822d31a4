//! Plans and sessions on simulated devices, each of which refuses the memory of all others.

mod budgets;
mod crossing;
mod failures;
mod faults;
mod following;
mod fusion;
mod generator;
mod limits;
mod liveness;
mod memory;
mod one_device;
mod overlap;
mod placement;
mod policy;
mod property;
mod separate_memory;
mod session;
mod world;
