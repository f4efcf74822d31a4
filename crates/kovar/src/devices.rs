//! The devices of this machine.

use std::any::Any;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuError, CpuOptions};
use kovar_gpu::{Features, GpuBackend, GpuError, GpuOptions, Gpus};

use crate::cache::cache_folder;

/// Which devices to use, and how.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// The devices' names, separated by commas, the preferred one first; a device's id is its name.
    /// `cpu`, for one of fewer vector instructions with their level, `cpu:portable`; `gpu0` and so
    /// on, hardware before software, `gpu` for the first of them. Several CPUs have memory and
    /// threads of their own. The CPU if not given.
    pub device: Option<String>,
    /// Threads of the CPU, at most [`max_threads`](kovar_cpu::pool::max_threads); as many as the
    /// process may run at once if not given.
    pub threads: Option<usize>,
    /// The vector instructions of the CPU; its best if not given.
    pub simd: Option<SimdLevel>,
    /// Features of GPUs that are not used.
    pub masked_gpu_features: Features,
    /// The GPUs and the devices that are open on them. Clones of the options share it: a GPU that
    /// is opened through several of them is one device with one queue.
    pub gpus: Gpus,
}

/// Why devices could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// A device that does not exist.
    #[error("there is no device `{name}`; known: {}", known.join(", "))]
    UnknownDevice {
        /// The name as given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A GPU on a machine without any.
    #[error(
        "there is no device `{name}`: no driver for Vulkan, Metal or DirectX 12 offers a GPU; \
         known: {}", known.join(", ")
    )]
    NoGpu {
        /// The name as given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
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
    /// A GPU could not be opened.
    #[error("{device} cannot be used")]
    Gpu {
        /// The name as given.
        device: String,
        /// Why not.
        source: GpuError,
    },
}

/// The names of all devices of the machine, the CPU first. No device is opened.
pub fn device_names(gpus: &Gpus) -> Vec<String> {
    let gpus = gpus.adapters(Features::NONE).into_iter().map(|gpu| gpu.id);
    std::iter::once("cpu".to_owned()).chain(gpus).collect()
}

/// The names of devices, with those of a CPU of fewer vector instructions.
fn known_names(gpus: &Gpus) -> Vec<String> {
    let mut names = device_names(gpus);
    let levels = SimdLevel::available().into_iter();
    names.splice(1..1, levels.map(|level| format!("cpu:{}", level.name())));
    names
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

/// The GPU that a device is, if it is one: its profiles, captures and properties.
pub fn gpu_of(device: &dyn Backend) -> Option<&GpuBackend> {
    (device as &dyn Any).downcast_ref()
}

fn device(name: &str, options: &DeviceOptions) -> Result<Arc<dyn Backend>, DevicesError> {
    let unknown = || DevicesError::UnknownDevice {
        name: name.to_owned(),
        known: known_names(&options.gpus),
    };
    if let Some(gpu) = gpu_name(name) {
        return Ok(Arc::new(self::gpu(&gpu.id(), gpu, options)?));
    }
    let (kind, level) = match name.split_once(':') {
        Some((kind, level)) => (kind, Some(level.parse().map_err(|_| unknown())?)),
        None => (name, options.simd),
    };
    match kind {
        "cpu" => Ok(Arc::new(cpu(name, level, options)?)),
        _ => Err(unknown()),
    }
}

/// What a GPU's name says: its index, and for tests which stand-in for a further GPU it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GpuName {
    index: usize,
    virtual_id: u32,
}

impl GpuName {
    /// The id of the device, the same however it was named.
    fn id(self) -> String {
        match self.virtual_id {
            0 => format!("gpu{}", self.index),
            stand_in => format!("gpu{}:virtual{stand_in}", self.index),
        }
    }
}

/// Reads `gpu`, `gpu1` and `gpu1:virtual2`.
fn gpu_name(full: &str) -> Option<GpuName> {
    let (name, virtual_id) = match full.split_once(':') {
        Some((name, stand_in)) => (name, stand_in.strip_prefix("virtual")?.parse().ok()?),
        None => (full, 0),
    };
    let index = match name.strip_prefix("gpu")? {
        "" => 0,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    // Neither `gpu00` nor `gpu0:virtual0`.
    let gpu = GpuName { index, virtual_id };
    (name == "gpu" || gpu.id() == full).then_some(gpu)
}

fn gpu(id: &str, name: GpuName, options: &DeviceOptions) -> Result<GpuBackend, DevicesError> {
    // The name may be that of a software implementation; hardware has the lower numbers.
    let mut gpu = GpuOptions::new()
        .software()
        .id(id)
        .index(name.index)
        .virtual_id(name.virtual_id)
        .masked(options.masked_gpu_features);
    if let Some(folder) = cache_folder() {
        gpu = gpu.cache_folder(folder.join("pipelines"));
    }
    options.gpus.open(gpu).map_err(|error| match error {
        GpuError::None { found, .. } => {
            let (name, known) = (id.to_owned(), known_names(&options.gpus));
            match found {
                0 => DevicesError::NoGpu { name, known },
                _ => DevicesError::UnknownDevice { name, known },
            }
        }
        source => DevicesError::Gpu {
            device: id.to_owned(),
            source,
        },
    })
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
            ..DeviceOptions::default()
        };
        let devices = devices(&options).unwrap();
        let info = devices[0].info();
        assert_eq!((info.id.as_str(), info.threads), ("cpu", Some(3)));
        assert!(info.features.iter().any(|feature| feature == "portable"));
    }

    fn opened(device: &str, masked: Features) -> Vec<Arc<dyn Backend>> {
        let options = DeviceOptions {
            device: Some(device.to_owned()),
            masked_gpu_features: masked,
            ..DeviceOptions::default()
        };
        devices(&options).expect("the tests need a Vulkan driver, at least a software one")
    }

    #[test]
    fn gpus_go_by_number_and_share_a_queue_unless_virtual() {
        let devices = opened("gpu0,gpu,gpu0:virtual1", Features::NONE);
        let ids = devices.iter().map(|device| device.info().id.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), ["gpu0", "gpu0", "gpu0:virtual1"]);
        let buffer = devices[0].alloc(16).unwrap();
        devices[1].queue().write(&buffer, 0, &[1; 16]).unwrap();
        assert!(devices[2].queue().write(&buffer, 0, &[1; 16]).is_err());
        assert_eq!(device_names(&Gpus::new())[..2], ["cpu", "gpu0"]);
    }

    #[test]
    fn masked_features_are_not_used() {
        let devices = opened("gpu0", Features::ALL);
        assert!(devices[0].info().features.is_empty());
        let gpu = gpu_of(devices[0].as_ref()).unwrap();
        assert_eq!(gpu.adapter_info().unwrap().subgroup_sizes, None);
        assert!(gpu_of(opened("cpu", Features::ALL)[0].as_ref()).is_none());
    }

    #[test]
    fn names_that_are_no_gpus_are_unknown_devices() {
        let name = |index, virtual_id| Some(GpuName { index, virtual_id });
        assert_eq!(gpu_name("gpu"), name(0, 0));
        assert_eq!(gpu_name("gpu12"), name(12, 0));
        assert_eq!(gpu_name("gpu1:virtual3"), name(1, 3));
        for wrong in [
            "gpu+1",
            "gpu-1",
            "gpu0:",
            "gpu0:avx2",
            "gpu0:virtual",
            "gpu0:virtualx",
            "gpux",
            "cpu",
            "gpu99999999999999999999999",
            "gpu00",
            "gpu0:virtual0",
            "gpu0:virtual01",
            "GPU0",
        ] {
            assert_eq!(gpu_name(wrong), None, "{wrong}");
        }
        for name in ["gpu4000", "gpu0:avx2"] {
            let options = DeviceOptions {
                device: Some(name.to_owned()),
                ..DeviceOptions::default()
            };
            let message = devices(&options).unwrap_err().to_string();
            let start = format!("there is no device `{name}`; known: cpu, cpu:");
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains(", gpu0"), "{message}");
        }
    }
}
