//! Runs whose actions are not all queued yet.
//!
//! Bytes that cross between devices go through host memory, so the host has to wait for them. To
//! keep all devices busy meanwhile, a run is queued only up to its first such wait. Later runs are
//! queued up to the first device that an earlier run still needs. When as many runs are in flight
//! as there are devices, the host waits for the bytes that are estimated to arrive first. So with
//! the layers of a model on several devices, each device works on a run of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use kovar_core::StorageId;
use kovar_core::backend::Backend;
use kovar_core::error::DeviceError;

use super::executable::{Bound, Executable, Tickets};
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::schedule::Action;

/// A run whose actions are not all queued yet.
pub(crate) struct InFlightRun {
    executable: Arc<Executable>,
    bound: Arc<Bound>,
    /// The bytes of the inputs, for the devices that do not have them yet.
    inputs: Vec<(StorageId, Vec<u8>)>,
    scalars: Vec<i32>,
    tickets: Tickets,
    /// By copy, when its bytes are estimated to arrive, in nanoseconds.
    ready: Vec<f64>,
    /// The index of the next action.
    at: usize,
    /// The devices that have their inputs.
    begun: DeviceSet,
}

impl InFlightRun {
    pub(crate) fn new(
        executable: &Arc<Executable>,
        bound: Arc<Bound>,
        inputs: Vec<(StorageId, Vec<u8>)>,
        scalars: &[i32],
    ) -> Self {
        let tickets = executable.no_tickets();
        Self {
            ready: vec![0.0; tickets.len()],
            tickets,
            executable: executable.clone(),
            bound,
            inputs,
            scalars: scalars.to_vec(),
            at: 0,
            begun: DeviceSet::default(),
        }
    }

    fn next(&self) -> Option<(Action, DeviceId)> {
        self.executable.actions().get(self.at).copied()
    }

    /// When the bytes that the next action waits for are estimated to arrive; `None` if it waits
    /// for none, or if its device is in `busy`.
    fn waits_until(&self, busy: DeviceSet) -> Option<f64> {
        match self.next()? {
            (Action::Write(copy), device) if !busy.contains(device) => Some(self.ready[copy]),
            _ => None,
        }
    }

    /// Queues actions until one is for a device in `busy`, or has to wait for bytes.
    fn advance(
        &mut self,
        devices: &[Arc<dyn Backend>],
        busy: DeviceSet,
        clocks: &mut [f64],
    ) -> Result<(), DeviceError> {
        while let Some((action, device)) = self.next() {
            if busy.contains(device) || matches!(action, Action::Write(_)) {
                break;
            }
            self.queue(devices, action, device, clocks)?;
        }
        Ok(())
    }

    /// Queues the next action, after waiting for its bytes if it needs any.
    fn queue(
        &mut self,
        devices: &[Arc<dyn Backend>],
        action: Action,
        device: DeviceId,
        clocks: &mut [f64],
    ) -> Result<(), DeviceError> {
        let backend = devices.at(device);
        if !self.begun.contains(device) {
            self.begun.insert(device);
            for (storage, bytes) in &self.inputs {
                Executable::write_input(&self.bound, (device, backend), *storage, bytes)?;
            }
        }
        let (executable, bound, scalars) = (&self.executable, &self.bound, &self.scalars);
        executable.queue((action, backend), bound, scalars, &mut self.tickets)?;
        let clock = &mut clocks[device.index()];
        match action {
            Action::Launch(segment) => *clock += executable.estimate_ns(segment),
            Action::Read(copy) => self.ready[copy] = *clock,
            Action::Write(copy) => *clock = clock.max(self.ready[copy]),
            Action::Upload(_) => {}
        }
        self.at += 1;
        Ok(())
    }
}

/// The runs in flight, the oldest first.
#[derive(Default)]
pub(crate) struct InFlightRuns {
    runs: VecDeque<InFlightRun>,
    /// By device, when its queued work is estimated to be done, in nanoseconds.
    clocks: Vec<f64>,
}

impl InFlightRuns {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run and queues what can be queued. No more runs are in flight than there are devices.
    pub(crate) fn push(
        &mut self,
        devices: &[Arc<dyn Backend>],
        run: InFlightRun,
    ) -> Result<(), DeviceError> {
        if self.is_empty() {
            self.clocks = vec![0.0; devices.len()];
        }
        self.runs.push_back(run);
        let pushed = self.advance(devices).and_then(|()| {
            while self.runs.len() > devices.len() {
                self.wait_for_next(devices)?;
            }
            Ok(())
        });
        self.clear_if_failed(pushed)
    }

    /// Queues all actions of all runs.
    pub(crate) fn finish(&mut self, devices: &[Arc<dyn Backend>]) -> Result<(), DeviceError> {
        let mut finished = Ok(());
        while finished.is_ok() && !self.is_empty() {
            finished = self.wait_for_next(devices);
        }
        self.clear_if_failed(finished)
    }

    /// After a failure no run is in flight.
    fn clear_if_failed(&mut self, outcome: Result<(), DeviceError>) -> Result<(), DeviceError> {
        if outcome.is_err() {
            self.runs.clear();
        }
        outcome
    }

    /// Queues what can be queued without waiting: the actions of each run up to the first bytes
    /// that it needs, or the first device that an earlier run still has actions for.
    fn advance(&mut self, devices: &[Arc<dyn Backend>]) -> Result<(), DeviceError> {
        let mut busy = DeviceSet::default();
        for run in &mut self.runs {
            run.advance(devices, busy, &mut self.clocks)?;
            busy = busy.or(run.executable.devices_from(run.at));
        }
        self.runs.retain(|run| run.next().is_some());
        Ok(())
    }

    /// Waits for the bytes that are estimated to arrive first, and queues what can be queued then.
    fn wait_for_next(&mut self, devices: &[Arc<dyn Backend>]) -> Result<(), DeviceError> {
        let mut busy = DeviceSet::default();
        let mut first: Option<(f64, usize)> = None;
        for (at, run) in self.runs.iter().enumerate() {
            if let Some(ready) = run.waits_until(busy)
                && first.is_none_or(|(least, _)| ready < least)
            {
                first = Some((ready, at));
            }
            busy = busy.or(run.executable.devices_from(run.at));
        }
        let next = first.and_then(|(_, at)| self.runs.get_mut(at));
        if let Some(run) = next
            && let Some((action, device)) = run.next()
        {
            run.queue(devices, action, device, &mut self.clocks)?;
        }
        self.advance(devices)
    }
}
