//! Waiting for devices.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::error::DeviceError;

use crate::device::DeviceSet;

/// How often a device is waited for until it is idle without an error: once for the error of the
/// work that is queued, and once more if that was an error of the wait itself.
const TRIES: usize = 2;

/// Waits until nothing is queued on any of `devices`, and returns the first error. No error of the
/// work so far is left for a later wait, unless a device does not answer at all.
pub(crate) fn settle<'b>(
    devices: impl IntoIterator<Item = &'b Arc<dyn Backend>>,
) -> Result<(), DeviceError> {
    let mut outcome = Ok(());
    for device in devices {
        for _ in 0..TRIES {
            let idle = finish(device.as_ref());
            let is_idle = idle.is_ok();
            outcome = outcome.and(idle);
            if is_idle {
                break;
            }
        }
    }
    outcome
}

/// Waits until what is queued on some of `devices` is done.
pub(crate) fn finish_on(
    devices: &[Arc<dyn Backend>],
    positions: DeviceSet,
) -> Result<(), DeviceError> {
    let waited_for = positions.iter().filter_map(|at| devices.get(at.index()));
    waited_for.map(AsRef::as_ref).try_for_each(finish)
}

/// Waits until what is queued on a device is done.
fn finish(device: &dyn Backend) -> Result<(), DeviceError> {
    let queue = device.queue();
    queue.wait(queue.fence()?)
}
