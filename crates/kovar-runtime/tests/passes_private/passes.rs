//! What each pass makes of a graph, to be corrupted.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::check::{Violation, check_groups, check_memory, check_segments};
use kovar_runtime::flow::check_flow;
use kovar_runtime::fusion::fuse;
use kovar_runtime::liveness::{Liveness, analyse};
use kovar_runtime::memory::{MemoryPlan, plan};
use kovar_runtime::placement::{Placement, Rules, place};
use kovar_runtime::segment::{Schedule, schedule};
use kovar_runtime::{DeviceId, Homes};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};

pub struct Passes {
    pub graph: Graph,
    pub devices: Vec<Arc<dyn Backend>>,
    pub liveness: Liveness,
    pub placement: Placement,
    pub schedule: Schedule,
    pub memory: MemoryPlan,
}

pub fn devices(options: Vec<SimulatedOptions>) -> Vec<Arc<dyn Backend>> {
    let devices = options.into_iter().map(SimulatedDevice::new);
    devices.map(|device| Arc::new(device) as _).collect()
}

pub fn second() -> DeviceId {
    DeviceId::all(2).nth(1).unwrap()
}

/// A graph with inputs `a` and `b` of four floats.
pub fn two_inputs() -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let [a, b] = ["a", "b"].map(|name| graph.input(name, DType::F32, &[4]).unwrap());
    (graph, a, b)
}

impl Passes {
    /// Runs all passes.
    pub fn of(graph: Graph, options: Vec<SimulatedOptions>, homes: &Homes) -> Self {
        Self::with(graph, options, homes, |_, _| {})
    }

    /// Runs all passes, with a change of the schedule before memory is planned.
    pub fn with(
        graph: Graph,
        options: Vec<SimulatedOptions>,
        homes: &Homes,
        change: impl Fn(&Graph, &mut Schedule),
    ) -> Self {
        let devices = devices(options);
        let liveness = analyse(&graph).unwrap();
        let placement = place(&graph, &liveness, &devices, &Rules::new(homes)).unwrap();
        let mut schedule = schedule(&graph, &liveness, &placement, None);
        fuse(&graph, &liveness, &devices, &mut schedule);
        change(&graph, &mut schedule);
        let memory = plan(&graph, &liveness, &placement, &schedule, &devices, true).unwrap();
        Self {
            graph,
            devices,
            liveness,
            placement,
            schedule,
            memory,
        }
    }

    /// Runs the checker.
    pub fn check(&self) -> Result<(), Violation> {
        let Self {
            graph,
            devices,
            liveness,
            placement,
            schedule,
            memory,
        } = self;
        check_segments(graph, liveness, placement, schedule)?;
        check_groups(graph, schedule, devices)?;
        check_memory(graph, placement, schedule, memory)?;
        check_flow(graph, liveness, placement, schedule, memory)
    }
}
