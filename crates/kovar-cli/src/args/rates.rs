use std::sync::Arc;

use clap::{Args, ValueEnum};
use kovar::runtime::Rates;
use kovar::{Backend, measured_rates, rates_cache};

use crate::diagnostics::note;
use crate::progress;

/// Where the rates of the devices come from.
#[derive(Args, Debug, Clone, Default)]
pub struct RatesArgs {
    /// How fast the devices are taken to be: cached, as measured once on this machine and kept in
    /// the user's cache folder; measured, anew; fixed, of usual devices. It matters where several
    /// devices share the work.
    #[arg(long, value_name = "FROM", default_value = "cached")]
    rates: RatesFrom,
}

/// A source of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RatesFrom {
    /// Measured once.
    #[default]
    Cached,
    /// Measured anew.
    Measured,
    /// Nothing is measured.
    Fixed,
}

impl RatesArgs {
    /// The rates of `devices`. Tells of what went wrong with them.
    pub fn of(&self, devices: &[Arc<dyn Backend>]) -> Rates {
        if self.rates == RatesFrom::Fixed {
            return Rates::default();
        }
        let spinner = progress::spinner("measuring the rates of the devices".to_owned());
        let anew = self.rates == RatesFrom::Measured;
        let measured = measured_rates(devices, rates_cache().as_deref(), anew);
        spinner.finish_and_clear();
        for problem in &measured.notes {
            note(format_args!("note: {problem}"));
        }
        measured.rates
    }
}
