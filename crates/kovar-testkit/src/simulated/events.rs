//! A log of the work on the queues of several devices, in one order.

use std::sync::{Arc, Mutex, PoisonError};

use super::faults::Call;

/// Whether work was queued, or is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It was queued.
    Queued,
    /// It ran.
    Done,
}

/// An event in the life of a piece of work on a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The device's id.
    pub device: String,
    /// The kind of work.
    pub call: Call,
    /// What happened to it.
    pub stage: Stage,
    /// Which piece of work of its kind it is on the device, counted from 0.
    pub nth: usize,
    /// The bytes that a read, write, copy or fill touches; 0 for a launch.
    pub bytes: usize,
}

/// A log that devices share; clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// All events so far.
    pub fn all(&self) -> Vec<Event> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn add(&self, device: &str, call: Call, stage: Stage, bytes: usize) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alike =
            |event: &&Event| event.device == device && event.call == call && event.stage == stage;
        let nth = events.iter().filter(alike).count();
        events.push(Event {
            device: device.to_owned(),
            call,
            stage,
            nth,
            bytes,
        });
    }
}
