//! Timing and capturing the GPU work of a model.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use kovar::gpu::{GpuBackend, Profile, chrome_trace};
use kovar::{Backend, Model, gpu_of};
use serde::Serialize;

use crate::diagnostics::{UsageError, note};

/// The devices of a model, at least one of them a GPU.
pub struct Gpus(Vec<Arc<dyn Backend>>);

/// The profile of a GPU for a test.
pub struct Timed {
    test: String,
    device: String,
    profile: Profile,
}

/// The same, for JSON.
#[derive(Serialize)]
pub struct TimedReport {
    test: String,
    device: String,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Kernel {
    op: &'static str,
    kernel: &'static str,
    dispatches: usize,
    nanoseconds: u64,
}

impl Gpus {
    /// The GPUs that `model` runs on.
    ///
    /// # Errors
    /// A usage error that names `option` if there are none.
    pub fn of(model: &Model, option: &str) -> anyhow::Result<Self> {
        let gpus = Self(model.session().devices().to_vec());
        if gpus.all().next().is_none() {
            let ids = gpus.0.iter().map(|device| device.info().id.as_str());
            let ids = ids.collect::<Vec<_>>().join(", ");
            let message =
                format!("{option} needs a GPU, but there is none among the devices: {ids}");
            return Err(UsageError::new(message).into());
        }
        Ok(gpus)
    }

    fn all(&self) -> impl Iterator<Item = &GpuBackend> {
        self.0.iter().filter_map(|device| gpu_of(device.as_ref()))
    }

    /// Prints a note for each device that is not timed.
    pub fn note_others(&self) {
        let others = self.0.iter().filter(|d| gpu_of(d.as_ref()).is_none());
        for device in others {
            let id = &device.info().id;
            note(format_args!(
                "note: {id} is not in the profile, which covers only GPUs; `kovar explain` times all devices"
            ));
        }
    }

    /// Times the GPU kernels of `work`.
    ///
    /// # Errors
    /// Those of `work`, or a GPU that cannot measure times.
    pub fn timed(
        &self,
        test: &str,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Timed>> {
        for gpu in self.all() {
            gpu.start_profile()?;
        }
        let worked = work();
        let timed = self.all().map(|gpu| Timed {
            test: test.to_owned(),
            device: gpu.info().id.clone(),
            profile: gpu.stop_profile(),
        });
        let timed = timed.collect();
        worked.map(|()| timed)
    }

    /// Runs `work` within a capture of the attached graphics debugger.
    ///
    /// # Errors
    /// Those of `work`, or a GPU failure.
    pub fn captured(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let captures = self.all().map(GpuBackend::start_capture);
        let captures = captures.collect::<Result<Vec<_>, _>>()?;
        work()?;
        for capture in captures {
            capture.end()?;
        }
        Ok(())
    }
}

impl Timed {
    /// The table, after a line with the test and the device.
    pub fn text(&self) -> String {
        format!("\n{} on {}:\n{}", self.test, self.device, self.profile)
    }

    /// The profile for JSON.
    pub fn report(&self) -> TimedReport {
        let kernels = self.profile.kernels().into_iter().map(|time| Kernel {
            op: time.op,
            kernel: time.kernel,
            dispatches: time.count,
            nanoseconds: time.nanoseconds,
        });
        TimedReport {
            test: self.test.clone(),
            device: self.device.clone(),
            kernels: kernels.collect(),
        }
    }
}

/// Writes the times as a Chrome trace.
///
/// # Errors
/// The file cannot be written.
pub fn write_trace(path: &Path, timed: &[Timed]) -> anyhow::Result<()> {
    let names: Vec<String> = timed
        .iter()
        .map(|timed| format!("{}, {}", timed.device, timed.test))
        .collect();
    let profiles = timed.iter().map(|timed| &timed.profile);
    let trace = chrome_trace(names.iter().map(String::as_str).zip(profiles));
    std::fs::write(path, trace).with_context(|| format!("cannot write {}", path.display()))
}
