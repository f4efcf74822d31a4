use std::num::NonZeroUsize;

use clap::Args;
use kovar::cpu::simd::SimdLevel;
use kovar::{DeviceOptions, DevicesError};

use crate::diagnostics::UsageError;

/// Where the work is done.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// The device to use; `kovar devices` lists them.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// Threads of the CPU [default: the cores that the program may use].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Use these vector instructions at most: portable, avx2, avx512-vnni, neon [default: the
    /// best that the CPU has].
    #[arg(long, value_name = "LEVEL")]
    pub simd: Option<SimdLevel>,
}

impl DeviceArgs {
    /// The options of the library.
    pub fn options(&self) -> DeviceOptions {
        DeviceOptions {
            device: self.device.clone(),
            threads: self.threads.map(NonZeroUsize::get),
            simd: self.simd,
        }
    }
}

/// An error of making devices, as a usage error where the command line is to blame.
pub fn devices_error(error: DevicesError) -> anyhow::Error {
    match error {
        DevicesError::UnknownDevice { .. } | DevicesError::SimdLevel { .. } => {
            UsageError::new(error.to_string()).into()
        }
        _ => error.into(),
    }
}
