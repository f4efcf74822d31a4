//! What a simulated device is like.

use std::fmt;
use std::sync::Arc;

use kovar_core::NodeRef;
use kovar_core::backend::{DeviceKind, Reason, Support};
use kovar_core::fusion::FusedNodes;

use super::events::Events;
use super::faults::{Call, Fault, FaultKind};
use super::program::Launched;
use crate::oracle::Activations;

/// Which nodes a simulated device supports.
pub type Supports = dyn Fn(NodeRef<'_>) -> Support + Send + Sync;

/// Which groups of nodes a simulated device runs as one kernel.
pub type Fuses = dyn Fn(FusedNodes<'_>) -> bool + Send + Sync;

/// Sees, and may spoil, what a launch left in memory.
pub type AfterLaunch = dyn Fn(&Launched<'_>) + Send + Sync;

/// What runs the work of a simulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The oracle computes in f64 and rounds to the dtype of each result.
    Oracle(Activations),
    /// Nothing runs and memory has no content: reads give zeros. Calls and allocations are checked
    /// and counted as always, but events are not logged.
    Idle,
}

/// The parts of a simulated device: an executor, what it supports, its limits and rates, how its
/// queue behaves, planted faults, and a log.
#[derive(Clone)]
pub struct SimulatedOptions {
    /// Its id.
    pub id: String,
    /// The kind of device that it stands for.
    pub kind: DeviceKind,
    /// What runs its work.
    pub executor: Executor,
    /// The nodes that it supports; all of them if `None`.
    pub supports: Option<Arc<Supports>>,
    /// The groups of supported nodes that it fuses; none of them if `None`.
    pub fuses: Option<Arc<Fuses>>,
    /// What [`Backend::streams`](kovar_core::backend::Backend::streams) says.
    pub streams: bool,
    /// What `DeviceInfo::alignment` says, a power of two.
    pub alignment: usize,
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: usize,
    /// Its memory, in bytes; unlimited if `None`.
    pub memory_bytes: Option<u64>,
    /// What `Backend::upload_ring_bytes` says.
    pub upload_ring_bytes: usize,
    /// What `Backend::readback_bytes` says.
    pub readback_bytes: usize,
    /// What `Program::own_bytes` says.
    pub program_bytes: usize,
    /// Floating-point operations per nanosecond, for estimates.
    pub flops_per_ns: f64,
    /// Bytes read or written per nanosecond, for estimates.
    pub bytes_per_ns: f64,
    /// Nanoseconds to begin a node, for estimates.
    pub latency_ns: f64,
    /// Whether queued work runs only when something waits for it, as late as a real queue may run
    /// it. If false, work runs as it is queued.
    pub deferred: bool,
    /// Calls that fail.
    pub faults: Vec<Fault>,
    /// Called after each launch.
    pub after_launch: Option<Arc<AfterLaunch>>,
    /// Where to log what happens on its queue.
    pub events: Option<Events>,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        Self {
            id: "sim0".to_owned(),
            kind: DeviceKind::Simulated,
            executor: Executor::Oracle(Activations::Exact),
            supports: None,
            fuses: None,
            streams: true,
            alignment: 64,
            max_buffer_bytes: usize::MAX / 2,
            memory_bytes: None,
            upload_ring_bytes: 0,
            readback_bytes: 0,
            program_bytes: 0,
            flops_per_ns: 10.0,
            bytes_per_ns: 10.0,
            latency_ns: 1000.0,
            deferred: false,
            faults: Vec::new(),
            after_launch: None,
            events: None,
        }
    }
}

impl fmt::Debug for SimulatedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedOptions")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl SimulatedOptions {
    /// A device of the given id.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            ..Self::default()
        }
    }

    /// Supports the nodes for which `supports` is true.
    pub fn supporting(
        mut self,
        supports: impl Fn(NodeRef<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.supports = Some(Arc::new(move |node| {
            let op = node.op().name();
            if supports(node) {
                Support::Yes
            } else {
                Support::No(Reason::Op { op })
            }
        }));
        self
    }

    /// Supports only some operations.
    pub fn only(self, ops: &'static [&'static str]) -> Self {
        self.supporting(|node| ops.contains(&node.op().name()))
    }

    /// Supports all but some operations.
    pub fn without(self, ops: &'static [&'static str]) -> Self {
        self.supporting(|node| !ops.contains(&node.op().name()))
    }

    /// Fuses the groups for which `fuses` is true.
    pub fn fusing(
        mut self,
        fuses: impl Fn(FusedNodes<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.fuses = Some(Arc::new(fuses));
        self
    }

    /// Runs queued work only when something waits for it, if `deferred`.
    pub fn deferred(mut self, deferred: bool) -> Self {
        self.deferred = deferred;
        self
    }

    /// Lets the call of a kind that is `nth`, counted from 0, fail.
    pub fn failing(mut self, call: Call, nth: usize, kind: FaultKind) -> Self {
        self.faults.push(Fault { call, nth, kind });
        self
    }
}
