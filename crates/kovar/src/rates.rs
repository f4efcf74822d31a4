//! The measured rates of this machine's devices, cached in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kovar_core::backend::{Backend, DeviceInfo};
use kovar_runtime::{DeviceRates, MeasureError, Rates, measure};
use serde::{Deserialize, Serialize};

use crate::cache::cache_folder;

/// Maximum size of the cache file; a larger file is not kovar's.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The rates of devices, and the problems in measuring them.
#[derive(Debug, Default)]
pub struct MeasuredRates {
    /// For [`Policy`](crate::Policy); a device that could not be measured is not in it.
    pub rates: Rates,
    /// The problems, for the user.
    pub notes: Vec<RatesNote>,
}

/// A problem with rates, without which kovar still works.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RatesNote {
    /// The rates could not be stored, so they will be measured again.
    #[error("the measured rates cannot be stored in {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A device could not be measured; its backend's own estimates are used.
    #[error("the rates of {device} cannot be measured: {source}")]
    Measure {
        /// The device's id.
        device: String,
        /// The cause.
        source: MeasureError,
    },
}

/// The file with the rates of all devices measured so far, in the user's cache folder; `None` if
/// there is no cache folder.
pub fn rates_cache() -> Option<PathBuf> {
    Some(cache_folder()?.join("rates.json"))
}

/// The rates of `devices` from the file `cache`. Rates that are not in the file, or all of them if
/// `measure_again`, are measured and stored there. Measuring takes about a second per device. The
/// key of a device contains its name, driver, features, threads and memory. A damaged file, or one
/// of another version of kovar, is ignored.
pub fn measured_rates(
    devices: &[Arc<dyn Backend>],
    cache: Option<&Path>,
    measure_again: bool,
) -> MeasuredRates {
    let mut cached = cache.and_then(Cached::read).unwrap_or_default();
    let mut found = MeasuredRates::default();
    let mut changed = false;
    for device in devices {
        let info = device.info();
        let key = key(info);
        let known = cached.devices.get(&key).filter(|_| !measure_again).copied();
        let rates = match known.map_or_else(|| measure(device.as_ref()), Ok) {
            Ok(rates) => rates,
            Err(source) => {
                let device = info.id.clone();
                found.notes.push(RatesNote::Measure { device, source });
                continue;
            }
        };
        if known.is_none() {
            cached.devices.insert(key, rates);
            changed = true;
        }
        found.rates.devices.insert(info.id.clone(), rates);
    }
    if let Some(path) = cache.filter(|_| changed)
        && let Err(source) = cached.write(path)
    {
        let path = path.to_owned();
        found.notes.push(RatesNote::Unwritable { path, source });
    }
    found
}

/// The cache key of a device: all properties that affect its rates.
fn key(info: &DeviceInfo) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let threads = number(info.threads.map(|threads| threads as u64));
    format!(
        "{}; {}; {}; {threads} threads; {} bytes",
        info.name,
        info.driver,
        info.features.join(" "),
        number(info.memory_bytes)
    )
}

/// The contents of the cache file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cached {
    kovar: String,
    devices: BTreeMap<String, DeviceRates>,
}

impl Default for Cached {
    fn default() -> Self {
        Self {
            kovar: env!("CARGO_PKG_VERSION").to_owned(),
            devices: BTreeMap::new(),
        }
    }
}

impl Cached {
    /// Reads the file; `None` if it is not valid for this version.
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return None;
        }
        let cached: Self = serde_json::from_slice(&bytes).ok()?;
        let sound = cached.devices.values().all(DeviceRates::is_sound);
        (sound && cached.kovar == Self::default().kovar).then_some(cached)
    }

    /// Replaces the file atomically.
    fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let partial = path.with_added_extension(format!("{}.partial", std::process::id()));
        let written = std::fs::write(&partial, text);
        let written = written.and_then(|()| std::fs::rename(&partial, path));
        written.inspect_err(|_| {
            // The error of writing is returned.
            let _ = std::fs::remove_file(&partial);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kovar_cpu::{CpuBackend, CpuOptions};
    use kovar_runtime::LinkRates;

    fn cpu(threads: usize) -> Vec<Arc<dyn Backend>> {
        let options = CpuOptions::new().threads(threads);
        vec![Arc::new(CpuBackend::new(options).unwrap())]
    }

    fn rates(figure: f64) -> DeviceRates {
        let link = LinkRates {
            latency_ns: figure,
            bytes_per_ns: 0.1 + figure,
        };
        DeviceRates {
            launch_ns: figure,
            dispatch_ns: figure,
            float_flops_per_ns: Some(1.0 / 3.0 + figure),
            quantized_flops_per_ns: None,
            read_bytes_per_ns: figure,
            upload: link,
            download: link,
        }
    }

    fn cached(devices: &[Arc<dyn Backend>], figure: f64) -> Cached {
        let mut cached = Cached::default();
        let devices = devices.iter().map(|device| key(device.info()));
        cached
            .devices
            .extend(devices.map(|key| (key, rates(figure))));
        cached
    }

    #[test]
    fn rates_are_measured_once_and_then_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/rates.json");
        let devices = cpu(1);
        let first = measured_rates(&devices, Some(&path), false);
        assert!(first.notes.is_empty(), "{:?}", first.notes);
        let measured = first.rates.devices["cpu"];
        assert!(measured.is_sound(), "{measured:?}");
        assert!(measured.float_flops_per_ns.is_some() && measured.quantized_flops_per_ns.is_some());
        let read = Cached::read(&path).unwrap();
        assert_eq!(read.devices[&key(devices[0].info())], measured);
        let second = measured_rates(&devices, Some(&path), false);
        assert_eq!(second.rates, first.rates);
        let files = std::fs::read_dir(folder.path().join("a/b")).unwrap();
        assert_eq!(files.count(), 1);
        let unwritable = measured_rates(&devices, Some(&path.join("rates.json")), false);
        assert!(unwritable.rates.devices["cpu"].is_sound());
        assert!(matches!(
            unwritable.notes.as_slice(),
            [RatesNote::Unwritable { .. }]
        ));
    }

    #[test]
    fn kept_rates_are_of_a_device_of_its_name_driver_and_width() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rates.json");
        let (one, two) = (cpu(1), cpu(2));
        assert_ne!(key(one[0].info()), key(two[0].info()));
        let mut both = cached(&one, 1.0);
        both.devices.append(&mut cached(&two, 2.0).devices);
        both.write(&path).unwrap();
        let found = measured_rates(&two, Some(&path), false);
        assert_eq!(found.rates.devices["cpu"], rates(2.0));
        let mut other = one[0].info().clone();
        other.driver = "another driver".to_owned();
        assert_ne!(key(one[0].info()), key(&other));
    }

    #[test]
    fn a_damaged_or_foreign_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rates.json");
        let good = cached(&cpu(1), 1.0);
        good.write(&path).unwrap();
        assert_eq!(Cached::read(&path), Some(good));
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in [
            text.replace(env!("CARGO_PKG_VERSION"), "0.0.9"),
            text.replace("\"dispatch_ns\": 1.0", "\"dispatch_ns\": -1.0"),
            text.replace("\"dispatch_ns\": 1.0", "\"dispatch_ns\": 1e999"),
            text.replace("dispatch_ns", "dispatched_ns"),
            text[..text.len() / 2].to_owned(),
            String::new(),
            "[[".repeat(100_000),
            "\u{0}".to_owned(),
            format!("{text}{}", " ".repeat(MAX_FILE_BYTES as usize)),
        ] {
            assert_ne!(damaged, text);
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(
                Cached::read(&path),
                None,
                "{}",
                &damaged[..damaged.len().min(200)]
            );
        }
        assert_eq!(Cached::read(folder.path()), None);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_that_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let in_the_way = folder.path().join("file");
        std::fs::write(&in_the_way, "").unwrap();
        let cached = Cached::default();
        assert!(cached.write(&in_the_way.join("rates.json")).is_err());
        let path = folder.path().join("rates.json");
        std::fs::create_dir(&path).unwrap();
        assert!(cached.write(&path).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
