//! The homes of weights and states.

use std::collections::HashMap;

use kovar_core::{Storage, StorageKind};

use super::error::UnknownDevice;
use super::pattern::Pattern;
use crate::device::DeviceId;

/// A user's request that the storages with some names are on a device. For a weight, the nodes that
/// read it run there; for any other storage, the nodes that write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The names.
    pub pattern: Pattern,
    /// The device.
    pub device: DeviceId,
}

/// The devices on which a session keeps its weights and states, and the user's pins. They are fixed
/// before a plan is compiled, so that all plans of the session agree.
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

    /// Limits the memory that a session allocates on a device, in bytes: weights in the device's
    /// form, states, activation memory, and what the device's queue holds for transfers.
    pub fn budget(mut self, device: DeviceId, bytes: u64) -> Self {
        self.budgets.insert(device, bytes);
        self
    }

    /// Keeps the weights whose names match `pattern` on the host. In every run they are uploaded to
    /// their device layer by layer, each while the layer before computes, and share memory there.
    pub fn stream(mut self, pattern: &str) -> Self {
        self.streamed.push(Pattern::new(pattern));
        self
    }

    /// Whether a weight is uploaded to its device in every run.
    pub fn is_streamed(&self, weight: &Storage) -> bool {
        let mut patterns = self.streamed.iter();
        weight.kind == StorageKind::Weight && patterns.any(|p| p.matches(&weight.name))
    }

    /// Whether any weights are streamed.
    pub fn has_streamed(&self) -> bool {
        !self.streamed.is_empty()
    }

    /// Whether any device has a budget.
    pub fn has_budgets(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// The budget of a device in bytes; `None` if it has none.
    pub fn budget_of(&self, device: DeviceId) -> Option<u64> {
        self.budgets.get(&device).copied()
    }

    /// Pins the storages whose names match `pattern` to `device`. If several pins match a name, the
    /// first one counts.
    pub fn pin(mut self, pattern: &str, device: DeviceId) -> Self {
        self.pins.push(Pin {
            pattern: Pattern::new(pattern),
            device,
        });
        self
    }

    /// Sets the home of the weight or state with a name; a pin takes precedence.
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

    /// Verifies that all devices are among the first `n`.
    pub(crate) fn check(&self, n: usize) -> Result<(), UnknownDevice> {
        let pinned = self.pins.iter().map(|pin| &pin.device);
        let others = self.chosen.values().chain(self.budgets.keys());
        let last = pinned.chain(others).max().max(Some(&self.default));
        match last.map(|device| device.index()).filter(|&last| last >= n) {
            Some(device) => Err(UnknownDevice { device, devices: n }),
            None => Ok(()),
        }
    }
}
