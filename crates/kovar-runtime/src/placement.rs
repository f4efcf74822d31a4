//! Which device owns each storage.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::{Backend, Support};
use kovar_core::{Graph, Storage, StorageId};

use crate::error::{CompileError, Refusal, Refusals};
use crate::liveness::Liveness;
use crate::plural::plural;

/// A device of a session, by its position in the session's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(usize);

impl DeviceId {
    /// The session's first device.
    pub const FIRST: DeviceId = DeviceId(0);

    /// The position in the session's list.
    pub fn index(self) -> usize {
        self.0
    }

    /// The devices of a session of `n`.
    pub fn all(n: usize) -> impl ExactSizeIterator<Item = Self> {
        (0..n).map(Self)
    }
}

/// The devices on which a session keeps its weights and states. Fixed before a plan is compiled,
/// so that all plans of the session agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    device: DeviceId,
}

impl Homes {
    /// Everything on one device.
    pub fn all_on(device: DeviceId) -> Self {
        Self { device }
    }

    /// The home of a weight or state.
    pub fn of(&self, storage: &Storage) -> DeviceId {
        let _ = storage;
        self.device
    }
}

/// The owner of each storage of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    owners: Vec<DeviceId>,
}

impl Placement {
    /// A placement from the owners of all storages, by id.
    pub fn new(owners: Vec<DeviceId>) -> Self {
        Self { owners }
    }

    /// The device that owns a storage; `None` for an id of another graph.
    pub fn owner(&self, storage: StorageId) -> Option<DeviceId> {
        self.owners.get(storage.index()).copied()
    }

    /// Whether a device can read a storage where it lies.
    pub fn holds(&self, device: DeviceId, storage: StorageId) -> bool {
        self.owner(storage) == Some(device)
    }

    /// One line for each device with what it owns.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = format!(
            "placement: {} on {}\n",
            plural(self.owners.len(), "storage"),
            plural(devices.len(), "device")
        );
        for (i, device) in devices.iter().enumerate() {
            let owned = || {
                let storages = graph.storages().iter().zip(&self.owners);
                storages.filter(move |(_, owner)| owner.index() == i)
            };
            let bytes: usize = owned().map(|(storage, _)| storage.bytes).sum();
            let _ = writeln!(
                text,
                "  {}: {}, {}",
                device.info().id,
                plural(owned().count(), "storage"),
                plural(bytes, "byte")
            );
        }
        text
    }
}

/// Places the storages of `graph`: all of them lie on the home of the session's weights and
/// states.
///
/// # Errors
/// [`CompileError::Unsupported`] for the first needed node that its device does not support, with
/// the reasons of all devices that refuse it.
pub fn place(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    homes: &Homes,
) -> Result<Placement, CompileError> {
    let owners: Vec<DeviceId> = graph.storages().iter().map(|s| homes.of(s)).collect();
    let placement = Placement::new(owners);
    for &id in liveness.nodes() {
        let Some(node) = graph.node(id) else { continue };
        let owner = placement.owner(node.output().storage);
        let backend = owner.and_then(|owner| devices.get(owner.index()));
        if backend.is_some_and(|backend| backend.supports(node) == Support::Yes) {
            continue;
        }
        let reasons = devices.iter().filter_map(|device| {
            let Support::No(reason) = device.supports(node) else {
                return None;
            };
            Some(Refusal {
                device: device.info().id.clone(),
                reason,
            })
        });
        return Err(CompileError::Unsupported {
            op: node.op().name(),
            node: id.index(),
            result: node.storage_of(node.output()).name.clone(),
            refusals: Refusals(reasons.collect()),
        });
    }
    Ok(placement)
}
