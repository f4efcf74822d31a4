/// How the next token is chosen from the model's logits.
///
/// The defaults are llama.cpp's. The stages work in the order of the fields' listing in [`Sampler`]'s
/// documentation: penalties, top-k, top-p, min-p, temperature.
///
/// [`Sampler`]: super::Sampler
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerParams {
    /// Logits are divided by it before one is drawn; below 1 the likely tokens gain, 0 always takes the
    /// likeliest (greedy). Default 0.8.
    pub temperature: f32,
    /// Keep the k likeliest tokens; 0 keeps all. Default 40.
    pub top_k: u32,
    /// Keep the likeliest tokens until their probabilities add up to it, in (0, 1]; 1 keeps all.
    /// Default 0.95.
    pub top_p: f32,
    /// Drop tokens less likely than this share of the likeliest one's probability, in [0, 1]; 0 keeps all.
    /// Default 0.05.
    pub min_p: f32,
    /// Divides positive logits of recent tokens and multiplies negative ones; 1 is off. Default 1.
    pub repetition_penalty: f32,
    /// How many of the latest tokens the three penalties look at; 0 is none. At most
    /// [`SamplerParams::MAX_REPEAT_LAST_N`]. Default 64.
    pub repeat_last_n: usize,
    /// Taken off the logit of a recent token once for each time it occurs. Default 0.
    pub frequency_penalty: f32,
    /// Taken off the logit of a recent token once. Default 0.
    pub presence_penalty: f32,
    /// Seed of the random numbers; `None` draws one from the operating system. Default `None`.
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
            seed: None,
        }
    }
}

/// A field of [`SamplerParams`] that is out of its range, or logits that no token can be chosen from.
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
        /// The values that it may have.
        allowed: &'static str,
    },
    /// There are no logits, or all of them are NaN or minus infinity.
    #[error("no token can be chosen: all of the {len} logits are NaN or minus infinity")]
    NoCandidates {
        /// Number of logits.
        len: usize,
    },
    /// There are more logits than ids can count.
    #[error("{len} logits are more than a 32-bit id can count")]
    TooManyLogits {
        /// Number of logits.
        len: usize,
    },
}

impl SamplerParams {
    /// The largest [`repeat_last_n`](Self::repeat_last_n).
    pub const MAX_REPEAT_LAST_N: usize = 1 << 20;

    /// Always the likeliest token; penalties off.
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
        let check = |field, value: f32, is_allowed: bool, allowed| match is_allowed {
            true => Ok(()),
            false => Err(SamplerError::OutOfRange {
                field,
                value: value.into(),
                allowed,
            }),
        };
        let v = self.temperature;
        check(
            "temperature",
            v,
            v.is_finite() && v >= 0.0,
            "finite and at least 0",
        )?;
        let v = self.top_p;
        check("top_p", v, v > 0.0 && v <= 1.0, "above 0 and at most 1")?;
        let v = self.min_p;
        check("min_p", v, (0.0..=1.0).contains(&v), "from 0 to 1")?;
        let v = self.repetition_penalty;
        check(
            "repetition_penalty",
            v,
            v.is_finite() && v > 0.0,
            "finite and above 0",
        )?;
        let v = self.frequency_penalty;
        check("frequency_penalty", v, v.is_finite(), "finite")?;
        let v = self.presence_penalty;
        check("presence_penalty", v, v.is_finite(), "finite")?;
        if self.repeat_last_n > Self::MAX_REPEAT_LAST_N {
            return Err(SamplerError::OutOfRange {
                field: "repeat_last_n",
                value: self.repeat_last_n as f64,
                allowed: "at most 1048576",
            });
        }
        Ok(())
    }
}
