use clap::Args;
use kovar::cpu::CpuError;
use kovar::cpu::pool::{PoolError, max_threads};
use kovar::cpu::simd::SimdLevel;
use kovar::gpu::Features;
use kovar::{DeviceOptions, DevicesError};

use super::whole;
use crate::diagnostics::{UsageError, note};
use crate::format;

/// Where the work is done.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// The device to use, `cpu`, `gpu0`, ..; `kovar devices` lists them [default: cpu]. Several,
    /// separated by commas, share the work as --place and --budget say: GPUs have no quantised
    /// products and no attention, so models need the CPU beside them, `gpu0,cpu`. `cpu:portable` is a
    /// CPU of fewer vector instructions.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// Threads of the CPU [default: the cores that the program may use].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1..=usize::MAX))]
    pub threads: Option<usize>,

    /// Use these vector instructions at most: portable, avx2, avx512-vnni, neon [default: the
    /// best that the CPU has].
    #[arg(long, value_name = "LEVEL")]
    pub simd: Option<SimdLevel>,

    /// Features that GPUs are not to use, each with a minus: -subgroups, -f16, -matrices, -all,
    /// separated by commas.
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
        }
    }

    /// Warns of more threads than there are cores for, unless there are so many that it is an error.
    pub fn warn(&self) {
        let Some(threads) = self.threads else { return };
        let cores = std::thread::available_parallelism().map_or(threads, usize::from);
        if threads > cores && threads <= max_threads() {
            note(format_args!(
                "warning: {} on {} wait for each other and are slower than {cores}",
                format::plural(threads, "thread"),
                format::plural(cores, "core"),
            ));
        }
    }
}

/// An error of making devices, as a usage error where the command line is to blame.
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
