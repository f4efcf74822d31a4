//! Cancellation of runs.

use std::collections::HashMap;
use std::ops::ControlFlow;

use kovar_core::backend::Fence;
use kovar_runtime::{DeviceId, ObservedSegment, RunError};

/// Cancels a run when the caller asks for it, and keeps at most two of its segments in flight.
pub(super) struct Cancellation<'g> {
    go_on: &'g mut dyn FnMut() -> ControlFlow<()>,
    /// By device, after its previous segment.
    fences: HashMap<DeviceId, Fence>,
    pub(super) failure: Option<RunError>,
}

impl<'g> Cancellation<'g> {
    pub(super) fn new(go_on: &'g mut dyn FnMut() -> ControlFlow<()>) -> Self {
        Self {
            go_on,
            fences: HashMap::new(),
            failure: None,
        }
    }

    /// Called after each queued segment.
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
