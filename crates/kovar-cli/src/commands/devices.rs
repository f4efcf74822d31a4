use std::process::ExitCode;

use clap::Args;
use kovar::DeviceKind;
use serde::Serialize;

use crate::args::{DeviceArgs, devices_error};
use crate::{format, output};

/// List the devices of this machine.
///
/// Shows the names that --device takes and, of each device, its threads, its memory and the vector
/// instructions that it is used with. -t and --simd change these as they do for the other commands.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar devices
  kovar devices --json | jq '.devices[0].features'")]
pub struct Devices {
    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    device: DeviceArgs,
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
}

impl Devices {
    /// Runs the command.
    ///
    /// # Errors
    /// A device that cannot be made.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.device.warn();
        let devices = kovar::devices(&self.device.options()).map_err(devices_error)?;
        let devices: Vec<Device> = devices
            .iter()
            .map(|device| describe(device.info()))
            .collect();
        if self.json {
            output::write_json(&Report { devices })?;
        } else {
            output::write(&devices.iter().map(text).collect::<String>())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(info: &kovar::DeviceInfo) -> Device {
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
    text
}
