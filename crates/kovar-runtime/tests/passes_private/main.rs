//! Tests of passes by themselves, which no plan of the public API can show: what the checker finds
//! in corrupted plans, groups for another device, the order of a run, and packing.

mod check;
mod flow;
mod groups;
mod packing;
mod passes;
mod units;
