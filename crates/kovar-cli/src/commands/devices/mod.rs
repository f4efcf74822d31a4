mod gpu;

use std::process::ExitCode;

use clap::Args;
use kovar::gpu::AdapterInfo;
use kovar::runtime::{DeviceRates, LinkRates, Rates};
use kovar::{Backend, DeviceKind, DeviceOptions, DevicesError, device_names, gpu_of};
use serde::Serialize;

use self::gpu::Gpu;
use crate::args::{DeviceArgs, RatesArgs, devices_error};
use crate::{format, output};

/// List the devices of this machine.
///
/// Shows the names for --device and, for each device, its memory and driver; for a CPU, its threads
/// and the vector instructions in use; for a GPU, its limits, its features with the reason for each
/// that is off, and its kinds of transfers. -t, --simd and --gpu-features apply as in other
/// commands. The speed of each device is measured on the first call, which takes about a second,
/// and cached; it decides how several devices share work. Software GPUs are only measured if
/// --device names them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar devices
  kovar devices --rates measured
  kovar devices --device gpu0 --gpu-features -subgroups,-f16
  kovar devices --json | jq '.devices[0].features'")]
pub struct Devices {
    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    device: DeviceArgs,

    #[command(flatten)]
    rates: RatesArgs,
}

#[derive(Serialize)]
struct Report {
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Device {
    id: String,
    kind: &'static str,
    name: String,
    threads: Option<usize>,
    memory_bytes: Option<u64>,
    features: Vec<String>,
    driver: String,
    gpu: Option<Gpu>,
    /// The error if it could not be opened.
    problem: Option<String>,
    rates: Option<DeviceRates>,
}

impl Devices {
    /// Runs the command.
    ///
    /// # Errors
    /// A device in --device that cannot be opened.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.device.warn();
        let options = self.device.options();
        let devices = match options.device {
            Some(_) => {
                let opened = kovar::devices(&options).map_err(devices_error)?;
                let rates = self.rates.of(&opened);
                let described = opened
                    .iter()
                    .map(|device| describe(device.as_ref(), &rates));
                described.collect()
            }
            None => self.all(&options)?,
        };
        if self.json {
            output::write_json(&Report { devices })?;
        } else {
            output::write(&devices.iter().map(text).collect::<String>())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// All devices of the machine, including those that cannot be opened.
    fn all(&self, options: &DeviceOptions) -> anyhow::Result<Vec<Device>> {
        let adapters = options.gpus.adapters(options.masked_gpu_features);
        let only_software = adapters.iter().all(|info| Gpu::from(info).is_software());
        let mut devices = Vec::new();
        for name in device_names(&options.gpus) {
            let mut device = adapters
                .iter()
                .find(|info| info.id == name)
                .map(Device::from_adapter);
            // Opening a software GPU takes long and only adds its speed.
            let wanted = device.as_ref().and_then(|device| device.gpu.as_ref());
            let wanted = wanted.is_none_or(|gpu| only_software || !gpu.is_software());
            if wanted {
                let options = DeviceOptions {
                    device: Some(name),
                    ..options.clone()
                };
                match (kovar::devices(&options), &mut device) {
                    (Ok(opened), device) => {
                        let rates = self.rates.of(&opened);
                        *device = opened
                            .first()
                            .map(|opened| describe(opened.as_ref(), &rates));
                    }
                    (Err(error @ DevicesError::Gpu { .. }), Some(device)) => {
                        device.problem = Some(format!("{:#}", anyhow::Error::new(error)));
                    }
                    (Err(error), _) => return Err(devices_error(error)),
                }
            }
            devices.extend(device);
        }
        Ok(devices)
    }
}

impl Device {
    /// A GPU that was not opened.
    fn from_adapter(info: &AdapterInfo) -> Self {
        let gpu = Gpu::from(info);
        Self {
            id: info.id.clone(),
            kind: "gpu",
            name: info.name.clone(),
            threads: None,
            memory_bytes: info.memory_bytes,
            features: gpu.features(),
            driver: info.driver.clone(),
            gpu: Some(gpu),
            problem: None,
            rates: None,
        }
    }
}

fn describe(device: &dyn Backend, rates: &Rates) -> Device {
    let info = device.info();
    Device {
        id: info.id.clone(),
        kind: match info.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::Simulated => "simulated",
            _ => "other",
        },
        name: info.name.clone(),
        threads: info.threads,
        memory_bytes: info.memory_bytes,
        features: info.features.clone(),
        driver: info.driver.clone(),
        gpu: gpu_of(device).and_then(|gpu| gpu.adapter_info().as_ref().map(Gpu::from)),
        problem: None,
        rates: rates.devices.get(&info.id).copied(),
    }
}

fn text(device: &Device) -> String {
    let memory = device
        .memory_bytes
        .map_or("unknown".to_owned(), format::bytes);
    let mut rows = vec![("memory", memory), ("driver", device.driver.clone())];
    match &device.gpu {
        Some(gpu) => rows.extend(gpu.rows()),
        None => {
            let threads = device.threads;
            let threads = threads.map_or("unknown".to_owned(), |n| n.to_string());
            rows.insert(0, ("threads", threads));
            rows.push(("features", device.features.join(", ")));
        }
    }
    rows.extend(device.problem.clone().map(|why| ("unusable", why)));
    rows.extend(device.rates.iter().flat_map(speeds));
    let rows = rows
        .iter()
        .map(|(name, value)| format!("  {name:10}  {value}\n"));
    format!(
        "{}: {}\n{}",
        device.id,
        device.name,
        rows.collect::<String>()
    )
}

fn speeds(rates: &DeviceRates) -> [(&'static str, String); 6] {
    let flops =
        |rate: Option<f64>| rate.map_or("none".to_owned(), |rate| format!("{rate:.1} GFLOP/s"));
    let link = |link: LinkRates| {
        let microseconds = link.latency_ns / 1e3;
        format!("{:.1} GB/s after {microseconds:.1} us", link.bytes_per_ns)
    };
    let (quantized, float) = (rates.quantized_flops_per_ns, rates.float_flops_per_ns);
    let products = format!("{} quantised, {} float", flops(quantized), flops(float));
    [
        ("products", products),
        ("reading", format!("{:.1} GB/s", rates.read_bytes_per_ns)),
        ("launch", format!("{:.2} us", rates.launch_ns / 1e3)),
        ("dispatch", format!("{:.2} us", rates.dispatch_ns / 1e3)),
        ("upload", link(rates.upload)),
        ("download", link(rates.download)),
    ]
}
