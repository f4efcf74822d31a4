use std::process::ExitCode;

use clap::Args;
use kovar::DeviceKind;
use kovar::runtime::{DeviceRates, LinkRates};
use serde::Serialize;

use crate::args::{DeviceArgs, RatesArgs, devices_error};
use crate::{format, output};

/// List the devices of this machine.
///
/// Shows the names that --device takes and, of each device, its threads, its memory and the vector
/// instructions that it is used with. -t and --simd change these as they do for the other commands.
/// How fast each device is, alone, is measured on the first call, which takes about a second, and
/// kept; the work of several devices is shared by these rates.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar devices
  kovar devices --rates measured
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
    rates: Option<DeviceRates>,
}

impl Devices {
    /// Runs the command.
    ///
    /// # Errors
    /// A device that cannot be made.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.device.warn();
        let devices = kovar::devices(&self.device.options()).map_err(devices_error)?;
        let rates = self.rates.of(&devices);
        let devices: Vec<Device> = devices
            .iter()
            .map(|device| describe(device.info(), rates.devices.get(&device.info().id)))
            .collect();
        if self.json {
            output::write_json(&Report { devices })?;
        } else {
            output::write(&devices.iter().map(text).collect::<String>())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(info: &kovar::DeviceInfo, rates: Option<&DeviceRates>) -> Device {
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
        rates: rates.copied(),
    }
}

fn text(device: &Device) -> String {
    let memory = device
        .memory_bytes
        .map_or("unknown".to_owned(), format::bytes);
    let threads = device
        .threads
        .map_or("unknown".to_owned(), |n| n.to_string());
    let mut text = format!("{}: {}\n", device.id, device.name);
    text.push_str(&format!("  threads   {threads}\n"));
    text.push_str(&format!("  memory    {memory}\n"));
    text.push_str(&format!("  features  {}\n", device.features.join(", ")));
    text.push_str(&format!("  driver    {}\n", device.driver));
    device
        .rates
        .map_or(text.clone(), |rates| text + &speeds(&rates))
}

fn speeds(rates: &DeviceRates) -> String {
    let flops =
        |rate: Option<f64>| rate.map_or("none".to_owned(), |rate| format!("{rate:.1} GFLOP/s"));
    let link = |link: LinkRates| {
        let microseconds = link.latency_ns / 1e3;
        format!("{:.1} GB/s behind {microseconds:.1} us", link.bytes_per_ns)
    };
    format!(
        "  products  {} quantised, {} float\n  reading   {:.1} GB/s\n  launch    {:.2} us\n  \
         dispatch  {:.2} us\n  upload    {}\n  download  {}\n",
        flops(rates.quantized_flops_per_ns),
        flops(rates.float_flops_per_ns),
        rates.read_bytes_per_ns,
        rates.launch_ns / 1e3,
        rates.dispatch_ns / 1e3,
        link(rates.upload),
        link(rates.download),
    )
}
