//! The devices of this machine.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuError, CpuOptions};

/// The names that [`DeviceOptions::device`] may have.
pub const DEVICE_NAMES: &[&str] = &["cpu"];

/// Which devices to use, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The devices' names, separated by commas, the preferred one first: each one of
    /// [`DEVICE_NAMES`], for a CPU of fewer vector instructions with their level, `cpu:portable`.
    /// Several CPUs have memory and threads of their own. All devices if not given.
    pub device: Option<String>,
    /// Threads of the CPU, at most [`max_threads`](kovar_cpu::pool::max_threads); as many as the
    /// process may run at once if not given.
    pub threads: Option<usize>,
    /// The vector instructions of the CPU; its best if not given.
    pub simd: Option<SimdLevel>,
}

/// Why devices could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// A device that does not exist.
    #[error("there is no device `{name}`; known: {}", known_names())]
    UnknownDevice {
        /// The name as given.
        name: String,
    },
    /// Vector instructions that the CPU does not have.
    #[error("this CPU has no {level}; it has {}", level_names(available))]
    SimdLevel {
        /// What was asked for.
        level: SimdLevel,
        /// What there is.
        available: Vec<SimdLevel>,
    },
    /// The CPU backend could not be made.
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

/// The names of devices, with those of a CPU of fewer vector instructions.
fn known_names() -> String {
    let levels = SimdLevel::available().into_iter();
    let levels = levels.map(|level| format!("cpu:{}", level.name()));
    let names = DEVICE_NAMES.iter().map(|&name| name.to_owned());
    names.chain(levels).collect::<Vec<_>>().join(", ")
}

fn level_names(levels: &[SimdLevel]) -> String {
    let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
    names.join(", ")
}

/// The devices that `options` ask for, the preferred one first.
///
/// # Errors
/// See [`DevicesError`].
pub fn devices(options: &DeviceOptions) -> Result<Vec<Arc<dyn Backend>>, DevicesError> {
    let names = options.device.as_deref().unwrap_or("cpu");
    names
        .split(',')
        .map(|name| device(name.trim(), options))
        .collect()
}

fn device(name: &str, options: &DeviceOptions) -> Result<Arc<dyn Backend>, DevicesError> {
    let unknown = || DevicesError::UnknownDevice {
        name: name.to_owned(),
    };
    let (kind, level) = match name.split_once(':') {
        Some((kind, level)) => (kind, Some(level.parse().map_err(|_| unknown())?)),
        None => (name, options.simd),
    };
    match kind {
        "cpu" => Ok(Arc::new(cpu(name, level, options)?)),
        _ => Err(unknown()),
    }
}

fn cpu(
    id: &str,
    level: Option<SimdLevel>,
    options: &DeviceOptions,
) -> Result<CpuBackend, DevicesError> {
    let mut cpu = CpuOptions::new().id(id);
    if let Some(threads) = options.threads {
        cpu = cpu.threads(threads);
    }
    if let Some(level) = level {
        if !level.is_available() {
            return Err(DevicesError::SimdLevel {
                level,
                available: SimdLevel::available(),
            });
        }
        cpu = cpu.simd(level);
    }
    Ok(CpuBackend::new(cpu)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_device_is_an_error_that_names_the_known_ones() {
        let options = DeviceOptions {
            device: Some("tpu".to_owned()),
            ..DeviceOptions::default()
        };
        let error = devices(&options).unwrap_err();
        let message = error.to_string();
        let known = "there is no device `tpu`; known: cpu, cpu:";
        assert!(message.starts_with(known), "{message}");
        assert!(message.contains("cpu:portable"), "{message}");
    }

    #[test]
    fn a_list_of_devices_is_in_its_order() {
        let options = DeviceOptions {
            device: Some("cpu:portable, cpu".to_owned()),
            threads: Some(1),
            ..DeviceOptions::default()
        };
        let devices = devices(&options).unwrap();
        let ids: Vec<&str> = devices
            .iter()
            .map(|device| device.info().id.as_str())
            .collect();
        assert_eq!(ids, ["cpu:portable", "cpu"]);
        assert_eq!(devices[0].info().features, ["portable"]);
    }

    #[test]
    fn the_cpu_has_the_threads_and_the_level_asked_for() {
        let options = DeviceOptions {
            device: Some("cpu".to_owned()),
            threads: Some(3),
            simd: Some(SimdLevel::Portable),
        };
        let devices = devices(&options).unwrap();
        let info = devices[0].info();
        assert_eq!((info.id.as_str(), info.threads), ("cpu", Some(3)));
        assert!(info.features.iter().any(|feature| feature == "portable"));
    }
}
