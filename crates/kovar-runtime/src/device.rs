//! Devices of a session, by position.

use std::sync::Arc;

use kovar_core::backend::Backend;

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

/// A set of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceSet(u64);

impl DeviceSet {
    /// The most devices that a session can have.
    pub const MAX: usize = 64;

    /// One device alone.
    pub fn only(device: DeviceId) -> Self {
        let mut set = Self::default();
        set.insert(device);
        set
    }

    /// Adds a device.
    pub fn insert(&mut self, device: DeviceId) {
        self.0 |= 1u64.checked_shl(device.0 as u32).unwrap_or(0);
    }

    /// Whether a device is in the set.
    pub fn contains(self, device: DeviceId) -> bool {
        self.0 & Self::only(device).0 != 0
    }

    /// The devices that are in both sets.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The devices that are in either set.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The devices that are not in the other set.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there are no devices.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The devices, in the session's order.
    pub fn iter(self) -> impl Iterator<Item = DeviceId> {
        DeviceId::all(Self::MAX).filter(move |&device| self.contains(device))
    }
}

/// The devices of a session, in its order.
pub(crate) trait Devices {
    /// The devices with their positions.
    fn numbered(&self) -> impl Iterator<Item = (DeviceId, &dyn Backend)>;

    /// The device at a position that the session has.
    fn at(&self, device: DeviceId) -> &dyn Backend;

    /// The id of the device at a position, for text.
    fn name(&self, device: DeviceId) -> &str;
}

impl Devices for [Arc<dyn Backend>] {
    fn numbered(&self) -> impl Iterator<Item = (DeviceId, &dyn Backend)> {
        DeviceId::all(self.len()).zip(self.iter().map(AsRef::as_ref))
    }

    fn at(&self, device: DeviceId) -> &dyn Backend {
        self[device.index()].as_ref()
    }

    fn name(&self, device: DeviceId) -> &str {
        &self.at(device).info().id
    }
}
