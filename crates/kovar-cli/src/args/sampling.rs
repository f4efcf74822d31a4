use std::str::FromStr;

use clap::Args;
use kovar::text::sampler::{DEFAULT_BREAKERS, Mirostat, breaker_tokens, text_bias};
use kovar::{SamplerError, SamplerParams, Tokenizer};

use super::{Bias, BiasOf, unescaped, whole};
use crate::diagnostics::UsageError;

/// How the next token is sampled. The defaults are the library's.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Temperature: values below 1 favour likely tokens, values above 1 unlikely ones; 0 always
    /// takes the most likely token (greedy).
    #[arg(long, value_name = "T", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().temperature)]
    pub temp: f32,

    /// Keep the K most likely tokens; 0 keeps all.
    #[arg(long, value_name = "K", allow_negative_numbers = true,
          value_parser = whole(0..=u32::MAX), default_value_t = SamplerParams::default().top_k)]
    pub top_k: u32,

    /// Keep the most likely tokens whose probabilities add up to P; 1 keeps all.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().top_p)]
    pub top_p: f32,

    /// Drop tokens less likely than P times the most likely one; 0 drops none.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().min_p)]
    pub min_p: f32,

    /// Make recent tokens less likely by this factor; 1 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().repetition_penalty)]
    pub repeat_penalty: f32,

    /// Number of recent tokens for the repeat, frequency and presence penalties.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().repeat_last_n)]
    pub repeat_last_n: usize,

    /// Lower a token's logit by X for each recent occurrence; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().frequency_penalty)]
    pub frequency_penalty: f32,

    /// Lower a token's logit by X if it occurred recently; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().presence_penalty)]
    pub presence_penalty: f32,

    /// Keep the tokens whose logit is at most N standard deviations below the greatest; -1 keeps
    /// all.
    #[arg(long, visible_alias = "top-nsigma", value_name = "N", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().top_n_sigma)]
    pub top_n_sigma: f32,

    /// Keep the tokens whose surprise is nearest to the expected one, until their probabilities add
    /// up to P; 1 keeps all.
    #[arg(long = "typical", visible_alias = "typical-p", value_name = "P",
          allow_negative_numbers = true, default_value_t = SamplerParams::default().typical_p)]
    pub typical_p: f32,

    /// With probability P, drop all likely tokens except the least likely of them (XTC); 0 is off.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().xtc_probability)]
    pub xtc_probability: f32,

    /// Minimum probability of a likely token for --xtc-probability; XTC is off above 0.5.
    #[arg(long, value_name = "P", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().xtc_threshold)]
    pub xtc_threshold: f32,

    /// Lower the logit of tokens that would continue a repeated sequence (DRY), by X at the allowed
    /// length; 0 is off.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().dry_multiplier)]
    pub dry_multiplier: f32,

    /// Factor by which each further token of the sequence increases the DRY penalty.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().dry_base)]
    pub dry_base: f32,

    /// Length from which repeated sequences are penalised by DRY.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().dry_allowed_length)]
    pub dry_allowed_length: usize,

    /// Number of recent tokens for DRY.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX),
          default_value_t = SamplerParams::default().dry_penalty_last_n)]
    pub dry_penalty_last_n: usize,

    /// Text at which repeated sequences end (DRY); may be given several times and replaces the
    /// defaults: a newline, `:`, `"` and `*`. `none` is no text.
    #[arg(long, value_name = "STRING", value_parser = unescaped, allow_hyphen_values = true)]
    pub dry_sequence_breaker: Vec<String>,

    /// Keep the surprise of the text near --mirostat-ent, with version 1 or 2 of Mirostat; 0 is
    /// off. Replaces top-n-sigma, top-k, typical, top-p, min-p and XTC.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0,
          value_parser = whole(0u8..=2))]
    pub mirostat: u8,

    /// Target surprise of Mirostat, in bits.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().mirostat_tau)]
    pub mirostat_ent: f32,

    /// Learning rate of Mirostat.
    #[arg(long, value_name = "X", allow_negative_numbers = true,
          default_value_t = SamplerParams::default().mirostat_eta)]
    pub mirostat_lr: f32,

    /// Add X to the logit of a token, given by id (15+2.5, 15-inf), or of each token of a quoted
    /// text ('" sad"-4'); -inf bans the token, +inf forces it. May be given several times.
    #[arg(short = 'l', long, value_name = "TOKEN+X", allow_hyphen_values = true)]
    pub logit_bias: Vec<Bias>,

    /// Seed of the random numbers; the same seed gives the same text. -1 takes a new seed each
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

/// The seed of the random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// A new one each time.
    Random,
    /// This one.
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
            .map_err(|rule| format!("{rule}, or -1 for a new seed"))
    }
}

impl Seed {
    fn value(self) -> u64 {
        match self {
            // 32 bits, so that JSON readers with doubles read it exactly.
            Self::Random => rand::random::<u32>().into(),
            Self::Fixed(seed) => seed,
        }
    }
}

impl SamplingArgs {
    /// The parameters of the library, with a seed.
    ///
    /// # Errors
    /// A usage error that names the option whose value is out of range.
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

    /// Adds the options that depend on `tokenizer` to `params`: logit biases and DRY breakers.
    ///
    /// # Errors
    /// A usage error for a token that does not exist, or a text without tokens.
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
