use clap::Args;
use kovar::cpu::CpuError;
use kovar::cpu::pool::{PoolError, max_threads};
use kovar::cpu::simd::SimdLevel;
use kovar::gpu::Features;
use kovar::{DeviceOptions, DevicesError};

use super::whole;
use crate::diagnostics::{UsageError, note};
use crate::format;

/// The devices to run on.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// The device to use, for example `cpu` or `gpu0`, or several, separated by commas; `kovar
    /// devices` lists them [default: cpu]. GPUs do not support attention and quantised weights yet,
    /// so models also need the CPU: `gpu0,cpu`. `cpu:portable` is the CPU without special vector
    /// instructions.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// Number of CPU threads [default: the cores available to the program].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1..=usize::MAX))]
    pub threads: Option<usize>,

    /// Limit the vector instructions to this level: portable, avx2, avx512-vnni, neon [default: the
    /// best that the CPU supports].
    #[arg(long, value_name = "LEVEL")]
    pub simd: Option<SimdLevel>,

    /// GPU features to disable, separated by commas, each with a minus: -subgroups, -f16,
    /// -matrices, -all.
    #[arg(long, value_name = "-NAME,..", allow_hyphen_values = true, default_value = "",
          hide_default_value = true, value_parser = Features::parse_masked)]
    pub gpu_features: Features,
}

impl DeviceArgs {
    /// The options of the library.
    pub fn options(&self) -> DeviceOptions {
        DeviceOptions {
            device: self.device.clone(),
            threads: self.threads,
            simd: self.simd,
            masked_gpu_features: self.gpu_features,
            ..DeviceOptions::default()
        }
    }

    /// Warns if there are more threads than cores. More than the maximum is an error, found later.
    pub fn warn(&self) {
        let Some(threads) = self.threads else { return };
        let cores = std::thread::available_parallelism().map_or(threads, usize::from);
        if threads > cores && threads <= max_threads() {
            note(format_args!(
                "warning: {} on {} are slower than {cores}: they wait for each other",
                format::plural(threads, "thread"),
                format::plural(cores, "core"),
            ));
        }
    }
}

/// Converts an error of opening devices to a usage error if the command line caused it.
pub fn devices_error(error: DevicesError) -> anyhow::Error {
    match error {
        DevicesError::UnknownDevice { .. }
        | DevicesError::NoGpu { .. }
        | DevicesError::SimdLevel { .. } => UsageError::new(error.to_string()).into(),
        DevicesError::Cpu(CpuError::Pool(
            cause @ (PoolError::NoThreads | PoolError::TooManyThreads { .. }),
        )) => UsageError::new(format!("invalid value for '--threads': {cause}")).into(),
        _ => error.into(),
    }
}
