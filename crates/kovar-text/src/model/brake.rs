//! Breaking a run off.

use std::collections::HashMap;
use std::ops::ControlFlow;

use kovar_core::backend::Fence;
use kovar_runtime::{DeviceId, ObservedSegment, RunError};

/// Breaks off a run whose caller wants it, and keeps no more than two segments of it on their way.
pub(super) struct Brake<'g> {
    go_on: &'g mut dyn FnMut() -> ControlFlow<()>,
    /// By device, behind its segment before.
    fences: HashMap<DeviceId, Fence>,
    pub(super) failure: Option<RunError>,
}

impl<'g> Brake<'g> {
    pub(super) fn new(go_on: &'g mut dyn FnMut() -> ControlFlow<()>) -> Self {
        Self {
            go_on,
            fences: HashMap::new(),
            failure: None,
        }
    }

    /// Called behind each segment that is queued.
    pub(super) fn check(&mut self, evaluated: &ObservedSegment<'_>) -> ControlFlow<()> {
        if (self.go_on)().is_break() {
            return ControlFlow::Break(());
        }
        let done = evaluated.fence().and_then(|fence| {
            let before = self.fences.insert(evaluated.device(), fence);
            before.map_or(Ok(()), |before| evaluated.wait_for(before))
        });
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
