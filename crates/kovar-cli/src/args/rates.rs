use std::sync::Arc;

use clap::{Args, ValueEnum};
use kovar::runtime::Rates;
use kovar::{Backend, measured_rates, rates_cache};

use crate::diagnostics::note;
use crate::progress;

/// The source of the device speeds.
#[derive(Args, Debug, Clone, Default)]
pub struct RatesArgs {
    /// Source of the device speeds that decide how several devices share the work: cached (measured
    /// once and stored in the user's cache folder), measured (measured again) or fixed (typical
    /// values).
    #[arg(long, value_name = "FROM", default_value = "cached")]
    rates: RatesFrom,
}

/// A source of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RatesFrom {
    /// Measured once and cached.
    #[default]
    Cached,
    /// Measured again.
    Measured,
    /// Typical values, not measured.
    Fixed,
}

impl RatesArgs {
    /// The rates of `devices`. Prints a note for each problem.
    pub fn of(&self, devices: &[Arc<dyn Backend>]) -> Rates {
        if self.rates == RatesFrom::Fixed {
            return Rates::default();
        }
        let spinner = progress::spinner("measuring the speed of the devices".to_owned());
        let measure_again = self.rates == RatesFrom::Measured;
        let measured = measured_rates(devices, rates_cache().as_deref(), measure_again);
        spinner.finish_and_clear();
        for problem in &measured.notes {
            note(format_args!("note: {problem}"));
        }
        measured.rates
    }
}
