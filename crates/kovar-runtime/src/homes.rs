//! Where weights and states live.

use std::collections::HashMap;

use kovar_core::{Storage, StorageKind};

use crate::device::DeviceId;
use crate::pattern::Pattern;

/// The wish that the storages of some names are on a device. Of a weight, the nodes that read it
/// run there; of anything else, the nodes that write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The names.
    pub pattern: Pattern,
    /// The device.
    pub device: DeviceId,
}

/// The devices on which a session keeps its weights and states, and the user's pins. Fixed before
/// a plan is compiled, so that all plans of the session agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    default: DeviceId,
    pins: Vec<Pin>,
    chosen: HashMap<(&'static str, String), DeviceId>,
    budgets: HashMap<DeviceId, u64>,
    streamed: Vec<Pattern>,
}

impl Homes {
    /// Everything on one device.
    pub fn all_on(device: DeviceId) -> Self {
        Self {
            default: device,
            pins: Vec::new(),
            chosen: HashMap::new(),
            budgets: HashMap::new(),
            streamed: Vec::new(),
        }
    }

    /// Limits what a session asks of a device, in bytes: weights in the device's form, states,
    /// activation memory and what the device's queue holds for transfers.
    pub fn budget(mut self, device: DeviceId, bytes: u64) -> Self {
        self.budgets.insert(device, bytes);
        self
    }

    /// Keeps the weights of the names of `pattern` on the host: in every run they cross to their
    /// device layer by layer, the next while the one before computes, and share memory there.
    pub fn stream(mut self, pattern: &str) -> Self {
        self.streamed.push(Pattern::new(pattern));
        self
    }

    /// Whether a weight crosses to its device in every run.
    pub fn is_streamed(&self, weight: &Storage) -> bool {
        let mut patterns = self.streamed.iter();
        weight.kind == StorageKind::Weight && patterns.any(|p| p.matches(&weight.name))
    }

    /// Whether weights of some names cross to their device in every run.
    pub fn has_streamed(&self) -> bool {
        !self.streamed.is_empty()
    }

    /// Whether a device has a limit.
    pub fn has_budgets(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// The limit of a device; `None` if there is none.
    pub fn budget_of(&self, device: DeviceId) -> Option<u64> {
        self.budgets.get(&device).copied()
    }

    /// Pins the storages of the names of `pattern` to `device`. Of several pins that match a name,
    /// the first counts.
    pub fn pin(mut self, pattern: &str, device: DeviceId) -> Self {
        self.pins.push(Pin {
            pattern: Pattern::new(pattern),
            device,
        });
        self
    }

    /// Chooses the home of the weight or state of a name where no pin does.
    pub fn choose(&mut self, kind: StorageKind, name: &str, device: DeviceId) {
        self.chosen.insert((kind.name(), name.to_owned()), device);
    }

    pub(crate) fn has_pins(&self) -> bool {
        !self.pins.is_empty()
    }

    /// The pin of a storage.
    pub fn pin_of(&self, storage: &Storage) -> Option<&Pin> {
        let mut pins = self.pins.iter();
        pins.find(|pin| pin.pattern.matches(&storage.name))
    }

    /// The home of a weight or state.
    pub fn of(&self, storage: &Storage) -> DeviceId {
        if let Some(pin) = self.pin_of(storage) {
            return pin.device;
        }
        if self.chosen.is_empty() {
            return self.default;
        }
        let key = (storage.kind.name(), storage.name.clone());
        self.chosen.get(&key).copied().unwrap_or(self.default)
    }

    /// The largest device that is named.
    pub(crate) fn last_device(&self) -> DeviceId {
        let pinned = self.pins.iter().map(|pin| pin.device);
        let chosen = self.chosen.values().copied();
        pinned.chain(chosen).fold(self.default, DeviceId::max)
    }
}
