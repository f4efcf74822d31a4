//! Measured rates of devices and of the links to them.

mod measure;

use std::collections::BTreeMap;
use std::sync::Arc;

use kovar_core::NodeRef;
use kovar_core::backend::Backend;
use serde::{Deserialize, Serialize};

use crate::device::DeviceId;

pub use measure::{MeasureError, measure};

/// The latency and bandwidth of a link between the host and a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRates {
    /// Nanoseconds until the first byte arrives.
    pub latency_ns: f64,
    /// Bytes per nanosecond after that.
    pub bytes_per_ns: f64,
}

impl Default for LinkRates {
    /// A slot of 16 PCIe 3.0 lanes.
    fn default() -> Self {
        Self {
            latency_ns: 10_000.0,
            bytes_per_ns: 12.0,
        }
    }
}

impl LinkRates {
    /// The time of one copy, in nanoseconds.
    pub fn time(&self, bytes: usize) -> f64 {
        self.latency_ns + bytes as f64 / self.bytes_per_ns
    }
}

/// The measured rates of a device, see [`measure`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRates {
    /// Nanoseconds to launch a program, whatever its size.
    pub launch_ns: f64,
    /// Nanoseconds from one small operation of a program to the next.
    pub dispatch_ns: f64,
    /// Floating-point operations per nanosecond of a product of floats over many rows; `None` if
    /// the device has no such product.
    pub float_flops_per_ns: Option<f64>,
    /// The same for a product with a quantised weight.
    pub quantized_flops_per_ns: Option<f64>,
    /// Bytes of its memory read per nanosecond.
    pub read_bytes_per_ns: f64,
    /// From the host to the device.
    pub upload: LinkRates,
    /// From the device to the host.
    pub download: LinkRates,
}

impl DeviceRates {
    /// The estimated time of a node, in nanoseconds: the dispatch, and its arithmetic or its
    /// traffic, whichever takes longer.
    pub fn node(&self, node: NodeRef<'_>) -> f64 {
        let cost = node.cost();
        let (float, quantized) = (self.float_flops_per_ns, self.quantized_flops_per_ns);
        let rate = if node.inputs().any(|input| input.dtype.is_quantized()) {
            quantized.or(float)
        } else {
            float.or(quantized)
        };
        let arithmetic = rate.map_or(0.0, |rate| cost.flops as f64 / rate);
        let traffic = (cost.bytes_read + cost.bytes_written) as f64 / self.read_bytes_per_ns;
        self.dispatch_ns + arithmetic.max(traffic)
    }

    /// Whether all figures are finite and positive.
    pub fn is_sound(&self) -> bool {
        let figures = [
            Some(self.launch_ns),
            Some(self.dispatch_ns),
            self.float_flops_per_ns,
            self.quantized_flops_per_ns,
            Some(self.read_bytes_per_ns),
            Some(self.upload.latency_ns),
            Some(self.upload.bytes_per_ns),
            Some(self.download.latency_ns),
            Some(self.download.bytes_per_ns),
        ];
        let mut known = figures.into_iter().flatten();
        known.all(|figure| figure.is_finite() && figure > 0.0)
    }
}

/// A launch through a usual driver, in nanoseconds.
const LAUNCH_NS: f64 = 2_000.0;

/// The rates from which the time of a placement is estimated. By default nothing is measured: the
/// backend estimates the time of nodes, and copies and launches take the time of a usual link and a
/// usual driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// The link to and from devices that were not measured.
    pub link: LinkRates,
    /// Nanoseconds to launch a program on a device that was not measured.
    pub launch_ns: f64,
    /// The measured rates, by the device's id.
    pub devices: BTreeMap<String, DeviceRates>,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            link: LinkRates::default(),
            launch_ns: LAUNCH_NS,
            devices: BTreeMap::new(),
        }
    }
}

/// [`Rates`] by the position of the devices in a session.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    link: LinkRates,
    launch_ns: f64,
    devices: Vec<Option<DeviceRates>>,
}

impl Times {
    pub(crate) fn new(rates: &Rates, devices: &[Arc<dyn Backend>]) -> Self {
        let measured = devices
            .iter()
            .map(|device| rates.devices.get(&device.info().id).copied());
        Self {
            link: rates.link,
            launch_ns: rates.launch_ns,
            devices: measured.collect(),
        }
    }

    fn of(&self, device: DeviceId) -> Option<&DeviceRates> {
        self.devices.get(device.index())?.as_ref()
    }

    /// The time of a node on a device, in nanoseconds.
    pub(crate) fn node(&self, device: DeviceId, backend: &dyn Backend, node: NodeRef<'_>) -> f64 {
        let time = match self.of(device) {
            Some(rates) => rates.node(node),
            None => backend.estimate(node),
        };
        time.max(0.0)
    }

    /// The time to launch a program on a device, in nanoseconds.
    pub(crate) fn launch(&self, device: DeviceId) -> f64 {
        self.of(device)
            .map_or(self.launch_ns, |rates| rates.launch_ns)
    }

    /// The time of a copy from a device, or from the host, to a device, in nanoseconds. A copy
    /// between two devices goes through the host.
    pub(crate) fn copy(&self, from: Option<DeviceId>, to: DeviceId, bytes: usize) -> f64 {
        let down = match from {
            None => Some(0.0),
            Some(from) => self.of(from).map(|rates| rates.download.time(bytes)),
        };
        let up = self.of(to).map(|rates| rates.upload.time(bytes));
        match down.zip(up) {
            Some((down, up)) => down + up,
            None => self.link.time(bytes),
        }
    }
}
