//! Runs whose steps are not all queued yet.
//!
//! What crosses between devices goes by way of the host, which has to wait for it. So that nobody
//! waits while other devices could be busy, a run is queued only as far as the first bytes that are
//! not there yet. The runs behind it are queued as far as the order of each device's work allows; when
//! there are enough of them, the bytes are waited for that are to come first. With layers on several
//! devices, each is so at work on a run of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use kovar_core::StorageId;
use kovar_core::backend::ReadTicket;
use kovar_core::error::DeviceError;

use crate::check::Violation;
use crate::device::{DeviceId, DeviceSet};
use crate::error::{RunError, SessionError};
use crate::link::Linked;
use crate::plan::PlanCore;
use crate::segment::Step;
use crate::session::Shared;

/// Why a step could not be queued.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum StepFailure {
    #[error(transparent)]
    Invalid(#[from] Violation),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<StepFailure> for RunError {
    fn from(failure: StepFailure) -> Self {
        match failure {
            StepFailure::Invalid(violation) => violation.into(),
            StepFailure::Device(error) => error.into(),
        }
    }
}

impl From<StepFailure> for SessionError {
    fn from(failure: StepFailure) -> Self {
        match failure {
            StepFailure::Invalid(violation) => violation.into(),
            StepFailure::Device(error) => error.into(),
        }
    }
}

/// Reads that were queued for copies, by copy.
pub(crate) type Tickets = Vec<Option<Box<dyn ReadTicket>>>;

/// A run on its way.
pub(crate) struct Flight {
    core: Arc<PlanCore>,
    linked: Arc<Linked>,
    /// What the run was given, for the devices that have not got it yet.
    inputs: Vec<(StorageId, Vec<u8>)>,
    scalars: Vec<i32>,
    tickets: Tickets,
    /// By copy, when its bytes are there by estimate.
    ready: Vec<f64>,
    /// The next step.
    at: usize,
    /// The devices that have their inputs.
    begun: DeviceSet,
}

impl Flight {
    pub(crate) fn new(
        core: &Arc<PlanCore>,
        linked: Arc<Linked>,
        inputs: Vec<(StorageId, Vec<u8>)>,
        scalars: &[i32],
    ) -> Self {
        let tickets = core.no_tickets();
        Self {
            ready: vec![0.0; tickets.len()],
            tickets,
            core: core.clone(),
            linked,
            inputs,
            scalars: scalars.to_vec(),
            at: 0,
            begun: DeviceSet::default(),
        }
    }

    fn next(&self) -> Option<(Step, DeviceId)> {
        self.core.steps().get(self.at).copied()
    }

    /// When the bytes that the next step waits for are there by estimate, if it may be queued.
    fn waits_until(&self, busy: DeviceSet) -> Option<f64> {
        match self.next()? {
            (Step::Write(copy), device) if !busy.contains(device) => self.ready.get(copy).copied(),
            _ => None,
        }
    }

    /// Queues steps until one is for a device of `busy`, or has to wait for bytes.
    fn advance(
        &mut self,
        shared: &Shared,
        busy: DeviceSet,
        clocks: &mut [f64],
    ) -> Result<(), StepFailure> {
        while let Some((step, device)) = self.next() {
            if busy.contains(device) || matches!(step, Step::Write(_)) {
                break;
            }
            self.queue(shared, step, device, clocks)?;
        }
        Ok(())
    }

    /// Queues the next step, waiting for its bytes if there are any.
    fn queue(
        &mut self,
        shared: &Shared,
        step: Step,
        device: DeviceId,
        clocks: &mut [f64],
    ) -> Result<(), StepFailure> {
        if !self.begun.contains(device) {
            self.begun.insert(device);
            let backend = shared.backend(device)?;
            for (storage, bytes) in &self.inputs {
                let binding = self.linked.binding(device, *storage);
                if let Some(binding) = binding.filter(|_| !bytes.is_empty()) {
                    let queue = backend.queue();
                    queue.write(&binding.buffer, binding.offset, bytes)?;
                }
            }
        }
        let (core, linked, scalars) = (&self.core, &self.linked, &self.scalars);
        core.queue(shared, linked, step, scalars, &mut self.tickets)?;
        if let Some(clock) = clocks.get_mut(device.index()) {
            match step {
                Step::Launch(segment) => *clock += core.estimate_ns(segment),
                Step::Read(copy) => {
                    if let Some(ready) = self.ready.get_mut(copy) {
                        *ready = *clock;
                    }
                }
                Step::Write(copy) => {
                    *clock = clock.max(self.ready.get(copy).copied().unwrap_or(0.0));
                }
                Step::Upload(_) => {}
            }
        }
        self.at += 1;
        Ok(())
    }
}

/// The runs on their way, the oldest first.
#[derive(Default)]
pub(crate) struct Flights {
    runs: VecDeque<Flight>,
    /// By device, when what is queued on it is done by estimate, in nanoseconds.
    clocks: Vec<f64>,
}

impl Flights {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Takes a run up, and queues what can be queued. No more runs are on their way than there are
    /// devices.
    pub(crate) fn push(&mut self, shared: &Shared, flight: Flight) -> Result<(), StepFailure> {
        if self.is_empty() {
            self.clocks = vec![0.0; shared.devices.len()];
        }
        self.runs.push_back(flight);
        let pushed = self.advance(shared).and_then(|()| {
            while self.runs.len() > shared.devices.len() {
                self.wait_for_next(shared)?;
            }
            Ok(())
        });
        self.cleared_if_failed(pushed)
    }

    /// Queues all steps of all runs.
    pub(crate) fn finish(&mut self, shared: &Shared) -> Result<(), StepFailure> {
        let mut finished = Ok(());
        while finished.is_ok() && !self.is_empty() {
            finished = self.wait_for_next(shared);
        }
        self.cleared_if_failed(finished)
    }

    /// After a failure no run is on its way.
    fn cleared_if_failed(&mut self, done: Result<(), StepFailure>) -> Result<(), StepFailure> {
        if done.is_err() {
            self.runs.clear();
        }
        done
    }

    /// Queues what can be queued without waiting: of each run up to the first bytes that it needs, or
    /// the first device that a run before it is not done with.
    fn advance(&mut self, shared: &Shared) -> Result<(), StepFailure> {
        let mut busy = DeviceSet::default();
        for run in &mut self.runs {
            run.advance(shared, busy, &mut self.clocks)?;
            busy = busy.or(run.core.devices_from(run.at));
        }
        self.runs.retain(|run| run.next().is_some());
        Ok(())
    }

    /// Waits for the bytes that are there first by estimate, and queues what can be queued then.
    fn wait_for_next(&mut self, shared: &Shared) -> Result<(), StepFailure> {
        let mut busy = DeviceSet::default();
        let mut first: Option<(f64, usize)> = None;
        for (at, run) in self.runs.iter().enumerate() {
            if let Some(ready) = run.waits_until(busy)
                && first.is_none_or(|(least, _)| ready < least)
            {
                first = Some((ready, at));
            }
            busy = busy.or(run.core.devices_from(run.at));
        }
        let next = first.and_then(|(_, at)| self.runs.get_mut(at));
        if let Some(run) = next
            && let Some((step, device)) = run.next()
        {
            run.queue(shared, step, device, &mut self.clocks)?;
        }
        self.advance(shared)
    }
}
