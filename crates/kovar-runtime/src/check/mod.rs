//! Verifies a schedule against its graph: structure, memory, and every byte that is read.

mod flow;
mod structure;

pub(crate) use flow::check_flow;
pub(crate) use structure::{check_groups, check_memory, check_segments};
