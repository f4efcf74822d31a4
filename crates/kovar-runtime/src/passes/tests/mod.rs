//! Tests of passes by themselves, which no plan of the public API can show: what the checker finds
//! in corrupted plans, groups for another device, the order of a run, and packing.

mod check;
mod flow;
mod groups;
mod packing;
mod units;

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, Graph, ValueId};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};

use super::Passes;
use crate::device::DeviceId;
use crate::place::{Homes, Inputs, PlaceError, Policy};
use crate::schedule::{Schedule, memory};
use crate::violation::Violation;

/// The results of the passes, to be corrupted, with their inputs.
struct Planned {
    graph: Graph,
    devices: Vec<Arc<dyn Backend>>,
    homes: Homes,
    policy: Policy,
    passes: Passes,
}

fn devices(options: Vec<SimulatedOptions>) -> Vec<Arc<dyn Backend>> {
    let devices = options.into_iter().map(SimulatedDevice::new);
    devices.map(|device| Arc::new(device) as _).collect()
}

fn second() -> DeviceId {
    DeviceId::all(2).nth(1).unwrap()
}

/// A graph with inputs `a` and `b` of four floats.
fn two_inputs() -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let [a, b] = ["a", "b"].map(|name| graph.input(name, DType::F32, &[4]).unwrap());
    (graph, a, b)
}

impl Planned {
    /// Runs all passes without the checker.
    fn new(graph: Graph, options: Vec<SimulatedOptions>, homes: &Homes) -> Self {
        let (devices, homes) = (devices(options), homes.clone());
        let policy = Policy {
            check_plan: false,
            ..Policy::default()
        };
        let passes = Passes::run(Inputs {
            graph: &graph,
            devices: &devices,
            homes: &homes,
            policy: &policy,
            cutoffs: &[],
        });
        Self {
            passes: passes.unwrap(),
            graph,
            devices,
            homes,
            policy,
        }
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            graph: &self.graph,
            devices: &self.devices,
            homes: &self.homes,
            policy: &self.policy,
            cutoffs: &[],
        }
    }

    /// Plans memory again after a change of the schedule.
    fn with_schedule(mut self, change: impl Fn(&Graph, &mut Schedule)) -> Self {
        change(&self.graph, &mut self.passes.schedule);
        let Passes {
            liveness,
            placement,
            schedule,
            ..
        } = &self.passes;
        let memory = memory::plan(self.inputs(), liveness, placement, schedule);
        self.passes.memory = memory.unwrap();
        self
    }

    /// Runs the checker.
    fn check(&self) -> Result<(), Violation> {
        match self.passes.check(self.inputs()) {
            Ok(()) => Ok(()),
            Err(PlaceError::Invalid(violation)) => Err(violation),
            Err(other) => panic!("{other}"),
        }
    }
}
