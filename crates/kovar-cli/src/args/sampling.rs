use std::str::FromStr;

use clap::Args;
use kovar::text::sampler::{DEFAULT_BREAKERS, Mirostat, breaker_tokens, text_bias};
use kovar::{SamplerError, SamplerParams, Tokenizer};

use super::{Bias, BiasOf, unescaped, whole};
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

    /// Keep the tokens whose logit is at most N standard deviations below the greatest; -1 keeps
    /// all.
    #[arg(long, visible_alias = "top-nsigma", value_name = "N", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().top_n_sigma)]
    pub top_n_sigma: f32,

    /// Choose among the tokens whose surprise is nearest to the expected one, until their
    /// probabilities add up to P; 1 is all.
    #[arg(long = "typical", visible_alias = "typical-p", value_name = "P",
          allow_negative_numbers = true, default_value_t = SamplerParams::default().typical_p)]
    pub typical_p: f32,

    /// Drop the likely tokens but the least likely of them with the probability P; 0 is off.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().xtc_probability)]
    pub xtc_probability: f32,

    /// The probability that makes a token likely for --xtc-probability; above 0.5 none is.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().xtc_threshold)]
    pub xtc_threshold: f32,

    /// Make tokens less likely that would continue a repeated sequence (DRY): by X at the allowed
    /// length; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().dry_multiplier)]
    pub dry_multiplier: f32,

    /// The factor by which each further token of the sequence raises --dry-multiplier.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().dry_base)]
    pub dry_base: f32,

    /// How long a sequence may be repeated without being made less likely.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().dry_allowed_length)]
    pub dry_allowed_length: usize,

    /// How many tokens back DRY looks.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().dry_penalty_last_n)]
    pub dry_penalty_last_n: usize,

    /// A text across which nothing counts as repeated; may be given several times, in place of
    /// the default ones: a newline, `:`, `"` and `*`. `none` is none.
    #[arg(long, value_name = "STRING", value_parser = unescaped, allow_hyphen_values = true)]
    pub dry_sequence_breaker: Vec<String>,

    /// Hold the surprise of the text near --mirostat-ent, by version 1 or 2 of Mirostat; 0 is off.
    /// In place of top-n-sigma, top-k, typical, top-p, min-p and XTC.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0,
          value_parser = whole(0u8..=2))]
    pub mirostat: u8,

    /// The surprise that Mirostat aims at, in bits.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().mirostat_tau)]
    pub mirostat_ent: f32,

    /// How much of its error Mirostat makes good at each token.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().mirostat_eta)]
    pub mirostat_lr: f32,

    /// Add to the logit of a token, by id (15+2.5, 15-inf) or of each token of a text in quotes
    /// ('" sad"-4'); -inf bans it, +inf takes it before all others. May be given several times.
    #[arg(short = 'l', long, value_name = "TOKEN+X", allow_hyphen_values = true)]
    pub logit_bias: Vec<Bias>,

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
            logit_bias: Vec::new(),
            top_n_sigma: self.top_n_sigma,
            typical_p: self.typical_p,
            xtc_probability: self.xtc_probability,
            xtc_threshold: self.xtc_threshold,
            dry_multiplier: self.dry_multiplier,
            dry_base: self.dry_base,
            dry_allowed_length: self.dry_allowed_length,
            dry_penalty_last_n: self.dry_penalty_last_n,
            dry_sequence_breakers: Vec::new(),
            mirostat: match self.mirostat {
                1 => Mirostat::V1,
                2 => Mirostat::V2,
                _ => Mirostat::Off,
            },
            mirostat_tau: self.mirostat_ent,
            mirostat_eta: self.mirostat_lr,
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

impl SamplingArgs {
    /// Adds to `params` what is said in texts, as the tokens of `tokenizer`.
    ///
    /// # Errors
    /// A usage error for a token that is not there, or a text without tokens.
    pub fn add_tokens(
        &self,
        params: &mut SamplerParams,
        tokenizer: &Tokenizer,
    ) -> Result<(), UsageError> {
        let wrong = |message: String| {
            UsageError::new(format!("invalid value for '--logit-bias': {message}"))
        };
        for Bias { of, bias } in &self.logit_bias {
            let biases = match of {
                BiasOf::Token(id) if tokenizer.token_text(*id).is_none() => {
                    let len = tokenizer.vocab_len();
                    return Err(wrong(format!("there is no token {id}, only {len} tokens")));
                }
                BiasOf::Token(id) => vec![(*id, *bias)],
                BiasOf::Text(text) => text_bias(tokenizer, text, *bias)
                    .map_err(|error| wrong(format!("{text:?}: {error}")))?,
            };
            if biases.is_empty() {
                return Err(wrong("the text is empty".to_owned()));
            }
            params.logit_bias.extend(biases);
        }
        if params.dry_multiplier > 0.0 {
            let texts: Vec<&str> = match self.dry_sequence_breaker.as_slice() {
                [] => DEFAULT_BREAKERS.to_vec(),
                texts => texts.iter().map(String::as_str).collect(),
            };
            let texts: Vec<&str> = texts.into_iter().filter(|&text| text != "none").collect();
            params.dry_sequence_breakers = breaker_tokens(tokenizer, &texts).map_err(|error| {
                let message = format!("invalid value for '--dry-sequence-breaker': {error}");
                UsageError::new(message)
            })?;
        }
        Ok(())
    }
}

/// The option that sets a field of [`SamplerParams`].
fn flag(field: &str) -> String {
    match field {
        "temperature" => "--temp".to_owned(),
        "repetition_penalty" => "--repeat-penalty".to_owned(),
        "typical_p" => "--typical".to_owned(),
        "mirostat_tau" => "--mirostat-ent".to_owned(),
        "mirostat_eta" => "--mirostat-lr".to_owned(),
        _ => format!("--{}", field.replace('_', "-")),
    }
}
