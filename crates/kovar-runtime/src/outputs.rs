//! What a run left to read.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

use kovar_core::backend::{Backend, Binding, ReadTicket};
use kovar_core::error::DeviceError;
use kovar_core::{DType, StorageKind, ValueId};

use crate::error::RunError;
use crate::link::Linked;
use crate::plan::Plan;
use crate::session::RunGuard;
use crate::settle::settle;

/// The outputs and states as a run left them. No other run of the session begins while this is
/// held; calls of the same thread that would have to wait for it fail with `Busy`. A ticket may
/// be waited for after this is dropped. What failed of a run that is neither read nor waited for
/// is told by the next run that is.
pub struct Outputs<'p> {
    plan: &'p Plan,
    linked: Arc<Linked>,
    guard: RefCell<RunGuard<'p>>,
    /// What became of the run, once all devices are done with it.
    outcome: OnceLock<Result<(), RunError>>,
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        self.guard.get_mut().running.unsettled = self.outcome.get().is_none();
    }
}

/// A contiguous window of a binding; nothing is bound where there are no bytes.
struct Window<'w> {
    bound: Option<(&'w Arc<dyn Backend>, &'w Binding)>,
    start: usize,
    len: usize,
}

/// The ticket of a value without bytes.
struct NoBytes;

impl ReadTicket for NoBytes {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        Ok(Vec::new())
    }
}

impl<'p> Outputs<'p> {
    pub(crate) fn new(plan: &'p Plan, linked: Arc<Linked>, guard: RunGuard<'p>) -> Self {
        Self {
            plan,
            linked,
            guard: RefCell::new(guard),
            outcome: OnceLock::new(),
        }
    }

    /// Waits until the run is done on all devices and copies the elements of a contiguous value on
    /// an output or state.
    ///
    /// # Errors
    /// [`RunError::NotReadable`], [`RunError::OutputSize`], and the run's first error on any
    /// device, each time.
    pub fn read(&self, value: ValueId, bytes: &mut [u8]) -> Result<(), RunError> {
        self.read_as(value, None, bytes)
    }

    /// [`read`](Self::read) of an F32 value.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`RunError::OutputDType`].
    pub fn read_f32(&self, value: ValueId, elements: &mut [f32]) -> Result<(), RunError> {
        self.read_as(value, Some(DType::F32), bytemuck::cast_slice_mut(elements))
    }

    /// [`read`](Self::read) of an I32 value.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`RunError::OutputDType`].
    pub fn read_i32(&self, value: ValueId, elements: &mut [i32]) -> Result<(), RunError> {
        self.read_as(value, Some(DType::I32), bytemuck::cast_slice_mut(elements))
    }

    /// Queues a read behind the run without waiting for it, but for what crosses between devices. An error of the run on the value's
    /// device comes back with the bytes and is not told by [`wait`](Self::wait) too.
    ///
    /// # Errors
    /// [`RunError::NotReadable`], a device's.
    pub fn ticket(&self, value: ValueId) -> Result<Box<dyn ReadTicket>, RunError> {
        let window = self.window(value)?;
        let Some((backend, binding)) = window.bound else {
            return Ok(Box::new(NoBytes));
        };
        if let Err(error) = self.finish() {
            return self
                .outcome
                .get_or_init(|| Err(error))
                .clone()
                .and(Ok(Box::new(NoBytes)));
        }
        let offset = binding.offset + window.start;
        Ok(backend.queue().read(&binding.buffer, offset, window.len)?)
    }

    /// Queues what is left of the run and of those before it.
    fn finish(&self) -> Result<(), RunError> {
        let mut guard = self.guard.borrow_mut();
        Ok(guard.running.finish(&self.plan.shared)?)
    }

    /// Waits until the run is done on all devices, and returns its first error, each time, or that
    /// of an earlier run that nobody waited for.
    ///
    /// # Errors
    /// A device's.
    pub fn wait(&self) -> Result<(), RunError> {
        let devices = &self.plan.shared.devices;
        let settled = || {
            self.finish()?;
            Ok(settle(devices)?)
        };
        self.outcome.get_or_init(settled).clone()
    }

    fn read_as(&self, id: ValueId, asked: Option<DType>, bytes: &mut [u8]) -> Result<(), RunError> {
        let window = self.window(id)?;
        let core = &self.plan.core;
        let value = core.graph.values().get(id.index());
        let name = || {
            let storage = core.graph.storage_of(id);
            storage.map_or_else(|_| String::new(), |storage| storage.name.clone())
        };
        if let (Some(asked), Some(value)) = (asked, value)
            && value.dtype != asked
        {
            return Err(RunError::OutputDType {
                name: name(),
                dtype: value.dtype,
                asked,
            });
        }
        if bytes.len() != window.len {
            return Err(RunError::OutputSize {
                name: name(),
                expected: window.len,
                found: bytes.len(),
            });
        }
        let Some((backend, binding)) = window.bound else {
            return Ok(());
        };
        let offset = binding.offset + window.start;
        let read = |bytes: &mut [u8]| backend.queue().read_into(&binding.buffer, offset, bytes);
        if let Some(outcome) = self.outcome.get() {
            outcome.clone()?;
            return Ok(read(bytes)?);
        }
        if let Err(error) = self.finish() {
            return self.outcome.get_or_init(|| Err(error)).clone();
        }
        // The read itself waits for the device that has the value.
        let devices = self.plan.shared.devices.iter();
        let others = settle(devices.filter(|device| !Arc::ptr_eq(device, backend)));
        let found = Ok(others.and(read(bytes))?);
        self.outcome.get_or_init(|| found).clone()
    }

    fn window(&self, id: ValueId) -> Result<Window<'_>, RunError> {
        let fail = |reason| RunError::NotReadable {
            index: id.index(),
            reason,
        };
        let core = &self.plan.core;
        let value = core.graph.value(id);
        let value = value.map_err(|_| fail("it does not exist in this plan"))?;
        let storage = core.graph.storages().get(value.storage.index());
        let kind = storage.map(|storage| storage.kind);
        if !matches!(kind, Some(StorageKind::Output | StorageKind::State)) {
            return Err(fail("it lies on neither an output nor a state"));
        }
        if !value.layout.is_contiguous() {
            return Err(fail("its elements are not contiguous"));
        }
        let device = core.passes.placement.home(value.storage);
        let device = device.ok_or_else(|| fail("it is on no device"))?;
        let backend = self.plan.shared.devices.get(device.index());
        let span = value.byte_span();
        let bound = backend
            .zip(self.linked.binding(device, value.storage))
            .filter(|_| !span.is_empty());
        if bound.is_none() && !span.is_empty() {
            return Err(fail("it has no memory"));
        }
        Ok(Window {
            bound,
            start: span.start,
            len: span.len(),
        })
    }
}

impl fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}
