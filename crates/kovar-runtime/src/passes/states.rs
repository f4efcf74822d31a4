//! State placement: the homes of states on the devices that read them.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageId, StorageKind};

use super::Passes;
use crate::device::DeviceId;
use crate::place::{Homes, Inputs, PlaceError, Policy};

/// Moves the home of each state of `graph` to the device on which all nodes that read it run, so
/// that it does not cross a link in every run. Pinned states, and states that several devices read,
/// keep their homes.
///
/// # Errors
/// See [`PlaceError`].
pub fn place_states(
    graph: &Graph,
    devices: &[Arc<dyn Backend>],
    mut homes: Homes,
    policy: &Policy,
) -> Result<Homes, PlaceError> {
    homes.check(devices.len())?;
    if devices.len() < 2 {
        return Ok(homes);
    }
    let passes = Passes::run(Inputs {
        graph,
        devices,
        homes: &homes,
        policy,
        cutoffs: &[],
    })?;
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
    for (position, _, node) in passes.liveness.in_order(graph) {
        if !node.inputs().any(|value| value.storage == storage) {
            continue;
        }
        let device = passes.placement.owner(node.output().storage, position);
        if only.is_some_and(|only| only != device) {
            return None;
        }
        only = Some(device);
    }
    only
}
