//! The results of a run.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

use kovar_core::backend::{Backend, Binding, ReadTicket};
use kovar_core::error::DeviceError;
use kovar_core::{DType, StorageKind, ValueId};

use super::Plan;
use super::error::RunError;
use crate::run::{Bound, wait_until_idle};
use crate::session::RunGuard;

/// The outputs and states as a run left them. No other run of the session begins while the caller
/// holds this; calls of the same thread that would have to wait for it fail with `Busy`. A ticket
/// may be waited for after this was dropped. If a run is neither read nor waited for, the next run
/// reports its error.
pub struct Outputs<'p> {
    plan: &'p Plan,
    bound: Arc<Bound>,
    guard: RefCell<RunGuard<'p>>,
    /// The result of the run, once all devices are done with it.
    outcome: OnceLock<Result<(), RunError>>,
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        self.guard.get_mut().state.may_be_busy = self.outcome.get().is_none();
    }
}

/// A contiguous window of a binding; `bound` is `None` if the window has no bytes.
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
    pub(crate) fn new(plan: &'p Plan, bound: Arc<Bound>, guard: RunGuard<'p>) -> Self {
        Self {
            plan,
            bound,
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

    /// Queues a read after the run without waiting for it; only copies between devices are waited
    /// for. The ticket returns the run's error on the value's device, which
    /// [`wait`](Self::wait) then does not report again.
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

    /// Queues the rest of the run and of those before it.
    fn finish(&self) -> Result<(), RunError> {
        let mut guard = self.guard.borrow_mut();
        Ok(guard.state.queue_all(&self.plan.session.devices)?)
    }

    /// Waits until the run is done on all devices. Each call returns the run's first error, or that
    /// of an earlier run that was not waited for.
    ///
    /// # Errors
    /// A device's.
    pub fn wait(&self) -> Result<(), RunError> {
        let devices = &self.plan.session.devices;
        let idle = || {
            self.finish()?;
            Ok(wait_until_idle(devices)?)
        };
        self.outcome.get_or_init(idle).clone()
    }

    fn read_as(&self, id: ValueId, asked: Option<DType>, bytes: &mut [u8]) -> Result<(), RunError> {
        let window = self.window(id)?;
        let executable = &self.plan.executable;
        let value = executable.graph.values().get(id.index());
        let name = || {
            let storage = executable.graph.storage_of(id);
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
        let devices = self.plan.session.devices.iter();
        let others = wait_until_idle(devices.filter(|device| !Arc::ptr_eq(device, backend)));
        let found = Ok(others.and(read(bytes))?);
        self.outcome.get_or_init(|| found).clone()
    }

    fn window(&self, id: ValueId) -> Result<Window<'_>, RunError> {
        let fail = |reason| RunError::NotReadable {
            index: id.index(),
            reason,
        };
        let executable = &self.plan.executable;
        let value = executable.graph.value(id);
        let value = value.map_err(|_| fail("it does not exist in this plan"))?;
        let storage = executable.graph.storage(value.storage);
        let kind = storage.map(|storage| storage.kind);
        if !matches!(kind, Some(StorageKind::Output | StorageKind::State)) {
            return Err(fail("it lies on neither an output nor a state"));
        }
        if !value.layout.is_contiguous() {
            return Err(fail("its elements are not contiguous"));
        }
        let device = executable.passes.placement.home(value.storage);
        let backend = &self.plan.session.devices[device.index()];
        let span = value.byte_span();
        let binding = self.bound.binding(device, value.storage);
        let bound = binding.filter(|_| !span.is_empty());
        let bound = bound.map(|binding| (backend, binding));
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
