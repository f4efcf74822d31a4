//! Waiting for devices.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::error::DeviceError;

use crate::device::{DeviceSet, Devices};

/// How often a device is waited for until a wait succeeds: one wait may report the error of queued
/// work, a second one an error of the wait itself.
const TRIES: usize = 2;

/// Waits until nothing is queued on any of `devices`, and returns the first error. No error of
/// earlier work is left for a later wait, unless a device does not answer at all.
pub(crate) fn wait_until_idle<'b>(
    devices: impl IntoIterator<Item = &'b Arc<dyn Backend>>,
) -> Result<(), DeviceError> {
    let mut outcome = Ok(());
    for device in devices {
        for _ in 0..TRIES {
            let idle = wait_for_queue(device.as_ref());
            let is_idle = idle.is_ok();
            outcome = outcome.and(idle);
            if is_idle {
                break;
            }
        }
    }
    outcome
}

/// Waits until the work that is queued on some of `devices` is done.
pub(crate) fn wait_for(devices: &[Arc<dyn Backend>], which: DeviceSet) -> Result<(), DeviceError> {
    let mut waited_for = which.iter().map(|device| devices.at(device));
    waited_for.try_for_each(wait_for_queue)
}

fn wait_for_queue(device: &dyn Backend) -> Result<(), DeviceError> {
    let queue = device.queue();
    queue.wait(queue.fence()?)
}
