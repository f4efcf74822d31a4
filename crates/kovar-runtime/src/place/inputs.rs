//! The inputs that all passes share.

use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use super::homes::Homes;
use super::policy::Policy;

/// The inputs that all passes share.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'i> {
    pub(crate) graph: &'i Graph,
    pub(crate) devices: &'i [Arc<dyn Backend>],
    pub(crate) homes: &'i Homes,
    pub(crate) policy: &'i Policy,
    /// By device, the position in [`Liveness::nodes`](super::liveness::Liveness::nodes) from which
    /// it gets only nodes that are pinned there and nodes that no other device supports, so that it
    /// keeps its budget. Devices beyond the end have no cutoff.
    pub(crate) cutoffs: &'i [usize],
}
