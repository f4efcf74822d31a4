//! Plans over several simulated devices, each of which refuses the memory of all others.

mod budgets;
mod cases;
mod failures;
mod faults;
mod flow;
mod following;
mod fusion;
mod generator;
mod limits;
mod plans;
mod policy;
mod property;
mod world;
