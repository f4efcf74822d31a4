use std::str::FromStr;

use clap::Args;
use kovar::{SamplerError, SamplerParams};

use super::whole;
use crate::diagnostics::UsageError;

/// How the next token is chosen. Defaults are the library's.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Temperature: below 1 the likely tokens gain, above 1 the unlikely ones; 0 always takes the
    /// likeliest (greedy).
    #[arg(long, value_name = "T", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().temperature)]
    pub temp: f32,

    /// Choose among the K likeliest tokens; 0 is all.
    #[arg(long, value_name = "K", allow_negative_numbers = true,
          value_parser = whole(0..=u32::MAX), default_value_t = SamplerParams::default().top_k)]
    pub top_k: u32,

    /// Choose among the likeliest tokens whose probabilities add up to P; 1 is all.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().top_p)]
    pub top_p: f32,

    /// Leave out tokens less likely than P times the likeliest; 0 leaves out none.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().min_p)]
    pub min_p: f32,

    /// Make tokens that came up lately less likely, by this factor; 1 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().repetition_penalty)]
    pub repeat_penalty: f32,

    /// How many tokens back the three penalties look.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().repeat_last_n)]
    pub repeat_last_n: usize,

    /// Lower a token's logit by X for each time that it came up lately; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().frequency_penalty)]
    pub frequency_penalty: f32,

    /// Lower a token's logit by X if it came up lately; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().presence_penalty)]
    pub presence_penalty: f32,

    /// Seed of the random numbers; the same seed gives the same text, -1 is a new one each
    /// time.
    #[arg(
        short,
        long,
        value_name = "N",
        default_value = "-1",
        allow_negative_numbers = true
    )]
    pub seed: Seed,
}

/// Where the random numbers begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// Somewhere else each time.
    Random,
    /// There.
    Fixed(u64),
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-1" {
            return Ok(Self::Random);
        }
        let seed = whole(0..=u64::MAX)(text);
        seed.map(Self::Fixed)
            .map_err(|rule| format!("{rule}, or -1 for a new one"))
    }
}

impl Seed {
    fn value(self) -> u64 {
        match self {
            // 32 bits, so that JSON readers that know only doubles keep it whole.
            Self::Random => rand::random::<u32>().into(),
            Self::Fixed(seed) => seed,
        }
    }
}

impl SamplingArgs {
    /// The parameters of the library, with a seed.
    ///
    /// # Errors
    /// A usage error that names the option whose value is out of its range.
    pub fn params(&self) -> Result<SamplerParams, UsageError> {
        let params = SamplerParams {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            repeat_last_n: self.repeat_last_n,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            seed: Some(self.seed.value()),
        };
        match params.validate() {
            Ok(()) => Ok(params),
            Err(SamplerError::OutOfRange {
                field,
                value,
                allowed,
            }) => Err(UsageError::new(format!(
                "invalid value '{}' for '{}': it must be {allowed}",
                value as f32,
                flag(field)
            ))),
            Err(error) => Err(UsageError::new(error.to_string())),
        }
    }
}

/// The option that sets a field of [`SamplerParams`].
fn flag(field: &str) -> String {
    match field {
        "temperature" => "--temp".to_owned(),
        "repetition_penalty" => "--repeat-penalty".to_owned(),
        _ => format!("--{}", field.replace('_', "-")),
    }
}
