//! Which nodes read a weight on which device.

use std::collections::HashMap;

use kovar_core::backend::WeightUse;
use kovar_core::{Graph, Storage, StorageId};

use super::segment::Schedule;
use crate::device::DeviceId;
use crate::place::placement::Placement;

/// The nodes of one device that read a weight.
pub(crate) struct WeightUses<'g> {
    pub(crate) id: StorageId,
    pub(crate) storage: &'g Storage,
    pub(crate) device: DeviceId,
    pub(crate) uses: Vec<WeightUse<'g>>,
}

/// The weights that each device keeps for its segments, in the order of their first use.
pub(crate) fn weight_uses<'g>(
    graph: &'g Graph,
    placement: &Placement,
    schedule: &Schedule,
) -> Vec<WeightUses<'g>> {
    let mut found: Vec<WeightUses<'_>> = Vec::new();
    let mut places: HashMap<(StorageId, DeviceId), usize> = HashMap::new();
    for segment in &schedule.segments {
        for node in graph.nodes_of(&segment.nodes) {
            for (operand, value) in node.weights() {
                let (id, storage, device) = (value.storage, node.storage_of(value), segment.device);
                if placement.is_streamed(id, device) {
                    continue;
                }
                let at = *places.entry((id, device)).or_insert_with(|| {
                    let uses = Vec::new();
                    found.push(WeightUses {
                        id,
                        storage,
                        device,
                        uses,
                    });
                    found.len() - 1
                });
                found[at].uses.push(WeightUse { node, operand });
            }
        }
    }
    found
}
