//! The homes of states beside the work that reads them.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageId, StorageKind};

use crate::compile::{Passes, Policy, place_and_plan};
use crate::device::DeviceId;
use crate::error::CompileError;
use crate::homes::Homes;

/// Chooses for each state of `graph` the device on which all nodes that read it run, if it is not
/// its home already: otherwise the state would cross a link in every run. Where a pin wants a
/// state, and where several devices read it, it stays.
///
/// # Errors
/// Those of [`compile`](crate::compile()) that a graph alone can cause.
pub fn near_readers(
    graph: &Graph,
    devices: &[Arc<dyn Backend>],
    mut homes: Homes,
    policy: &Policy,
) -> Result<Homes, CompileError> {
    if devices.len() < 2 {
        return Ok(homes);
    }
    let passes = place_and_plan(graph, devices, &homes, policy, &[])?;
    for (id, storage) in graph.storage_ids().zip(graph.storages()) {
        if storage.kind != StorageKind::State || homes.pin_of(storage).is_some() {
            continue;
        }
        if let Some(reader) = only_reader(graph, &passes, id)
            && reader != homes.of(storage)
        {
            homes.choose(storage.kind, &storage.name, reader);
        }
    }
    Ok(homes)
}

/// The device of all nodes that read a storage; `None` if there are none or several.
fn only_reader(graph: &Graph, passes: &Passes, storage: StorageId) -> Option<DeviceId> {
    let mut only = None;
    for (position, &id) in passes.liveness.nodes().iter().enumerate() {
        let node = graph.node(id)?;
        if !node.inputs().any(|value| value.storage == storage) {
            continue;
        }
        let device = passes.placement.owner(node.output().storage, position)?;
        if only.is_some_and(|only| only != device) {
            return None;
        }
        only = Some(device);
    }
    only
}
