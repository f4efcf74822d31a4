//! Verifies a schedule against its graph, independently of the passes that made it.

mod flow;
mod structure;

pub(crate) use flow::check_flow;
pub(crate) use structure::{check_groups, check_memory, check_segments};
