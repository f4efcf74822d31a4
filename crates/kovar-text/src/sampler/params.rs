/// The version of Mirostat, which keeps the surprise of the text near a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mirostat {
    /// Not used.
    #[default]
    Off,
    /// Keeps the number of tokens given by Zipf's law, fitted to the most likely tokens.
    V1,
    /// Keeps the tokens whose surprise is within the bound.
    V2,
}

/// How the next token is sampled from the model's logits.
///
/// The defaults are llama.cpp's. [`Sampler`] documents the order of the stages.
///
/// [`Sampler`]: super::Sampler
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerParams {
    /// Logits are divided by it. Below 1, likely tokens become more likely; 0 always takes the most
    /// likely token (greedy). Default 0.8.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all. Default 40.
    pub top_k: u32,
    /// Keep the most likely tokens whose probabilities add up to this value, in (0, 1]; 1 keeps
    /// all. Default 0.95.
    pub top_p: f32,
    /// Drop tokens whose probability is below this fraction of the highest probability, in [0, 1];
    /// 0 keeps all. Default 0.05.
    pub min_p: f32,
    /// Divides positive logits of recent tokens and multiplies negative ones; 1 is off. Default 1.
    pub repetition_penalty: f32,
    /// How many of the last tokens the three penalties cover; 0 is none. At most
    /// [`SamplerParams::MAX_REPEAT_LAST_N`]. Default 64.
    pub repeat_last_n: usize,
    /// Subtracted from the logit of a recent token, once per occurrence. Default 0.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of a recent token. Default 0.
    pub presence_penalty: f32,
    /// Added to the logits of these tokens: minus infinity bans a token, plus infinity forces it.
    /// See [`text_bias`](super::text_bias). Default none.
    pub logit_bias: Vec<(u32, f32)>,
    /// Keep the tokens whose logit is at most this many standard deviations below the greatest; 0
    /// or less keeps all. Default -1.
    pub top_n_sigma: f32,
    /// Keep the tokens whose surprise is nearest to the expected one, until their probabilities add
    /// up to this value, in (0, 1]; 1 keeps all. Default 1.
    pub typical_p: f32,
    /// The probability of dropping the most likely tokens (XTC), in [0, 1]; 0 is off. Default 0.
    pub xtc_probability: f32,
    /// XTC drops the tokens of at least this probability except the least likely of them, in [0,
    /// 1]; it is off above 0.5. Default 0.1.
    pub xtc_threshold: f32,
    /// Subtracted from the logit of a token that would continue a repeated sequence of the allowed
    /// length (DRY); 0 is off. Default 0.
    pub dry_multiplier: f32,
    /// The factor by which each further token of the sequence increases the DRY penalty, at least
    /// 1. Default 1.75.
    pub dry_base: f32,
    /// The shortest repeated sequence for which DRY penalises the next token. Default 2.
    pub dry_allowed_length: usize,
    /// How many of the last tokens DRY covers; 0 is none. At most
    /// [`SamplerParams::MAX_REPEAT_LAST_N`]. Default 64.
    pub dry_penalty_last_n: usize,
    /// Token sequences at which repeated sequences end; see
    /// [`breaker_tokens`](super::breaker_tokens). Default none.
    pub dry_sequence_breakers: Vec<Vec<u32>>,
    /// Mirostat, instead of top-n-sigma, top-k, typical, top-p, min-p and XTC. Default off.
    pub mirostat: Mirostat,
    /// The target surprise of Mirostat, in bits, above 0. Default 5.
    pub mirostat_tau: f32,
    /// The learning rate of Mirostat, above 0. Default 0.1.
    pub mirostat_eta: f32,
    /// Seed of the random numbers; `None` takes one from the operating system. Default `None`.
    pub seed: Option<u64>,
}

impl Default for SamplerParams {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repetition_penalty: 1.0,
            repeat_last_n: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            logit_bias: Vec::new(),
            top_n_sigma: -1.0,
            typical_p: 1.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: 64,
            dry_sequence_breakers: Vec::new(),
            mirostat: Mirostat::Off,
            mirostat_tau: 5.0,
            mirostat_eta: 0.1,
            seed: None,
        }
    }
}

/// A field of [`SamplerParams`] is out of range, or no token can be sampled.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// A parameter is out of its range, or not a number.
    #[error("{field} is {value}, but must be {allowed}")]
    OutOfRange {
        /// The field of [`SamplerParams`].
        field: &'static str,
        /// Its value.
        value: f64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// There are no logits, or all of them are NaN or minus infinity.
    #[error("no token can be sampled: all of the {len} logits are NaN or minus infinity")]
    NoCandidates {
        /// Number of logits.
        len: usize,
    },
    /// There are more logits than a 32-bit id can count.
    #[error("{len} logits are more than a 32-bit id can count")]
    TooManyLogits {
        /// Number of logits.
        len: usize,
    },
}

/// A range of a parameter: the check, and its description.
type Range = (fn(f32) -> bool, &'static str);

const FINITE: Range = (f32::is_finite, "finite");
const AT_LEAST_0: Range = (|v| v.is_finite() && v >= 0.0, "finite and at least 0");
const AT_LEAST_1: Range = (|v| v.is_finite() && v >= 1.0, "finite and at least 1");
const ABOVE_0: Range = (|v| v.is_finite() && v > 0.0, "finite and above 0");
const FRACTION: Range = (|v| (0.0..=1.0).contains(&v), "from 0 to 1");
const POSITIVE_FRACTION: Range = (|v| v > 0.0 && v <= 1.0, "above 0 and at most 1");
const NOT_NAN: Range = (|v| !v.is_nan(), "a number or infinite");

impl SamplerParams {
    /// The largest [`repeat_last_n`](Self::repeat_last_n).
    pub const MAX_REPEAT_LAST_N: usize = 1 << 20;

    /// Always the most likely token; penalties off.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// [`SamplerError::OutOfRange`] with the first field at fault.
    pub fn validate(&self) -> Result<(), SamplerError> {
        let biases = self.logit_bias.iter().map(|&(_, bias)| bias);
        let bias = biases.clone().find(|bias| bias.is_nan()).unwrap_or(0.0);
        let reals: [(&'static str, f32, Range); 15] = [
            ("temperature", self.temperature, AT_LEAST_0),
            ("top_p", self.top_p, POSITIVE_FRACTION),
            ("min_p", self.min_p, FRACTION),
            ("repetition_penalty", self.repetition_penalty, ABOVE_0),
            ("frequency_penalty", self.frequency_penalty, FINITE),
            ("presence_penalty", self.presence_penalty, FINITE),
            ("logit_bias", bias, NOT_NAN),
            ("top_n_sigma", self.top_n_sigma, FINITE),
            ("typical_p", self.typical_p, POSITIVE_FRACTION),
            ("xtc_probability", self.xtc_probability, FRACTION),
            ("xtc_threshold", self.xtc_threshold, FRACTION),
            ("dry_multiplier", self.dry_multiplier, AT_LEAST_0),
            ("dry_base", self.dry_base, AT_LEAST_1),
            ("mirostat_tau", self.mirostat_tau, ABOVE_0),
            ("mirostat_eta", self.mirostat_eta, ABOVE_0),
        ];
        let counts = [
            ("repeat_last_n", self.repeat_last_n),
            ("dry_penalty_last_n", self.dry_penalty_last_n),
        ];
        let counts = counts.into_iter().map(|(field, n)| {
            (
                field,
                n as f64,
                n <= Self::MAX_REPEAT_LAST_N,
                "at most 1048576",
            )
        });
        let reals = reals
            .into_iter()
            .map(|(field, v, (is_allowed, allowed))| (field, f64::from(v), is_allowed(v), allowed));
        match reals.chain(counts).find(|&(.., is_allowed, _)| !is_allowed) {
            None => Ok(()),
            Some((field, value, _, allowed)) => Err(SamplerError::OutOfRange {
                field,
                value,
                allowed,
            }),
        }
    }
}
