use super::{SamplerParams, stage::Stage};
use crate::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};

/// Adds biases to the logits of individual tokens.
#[derive(Debug)]
pub(crate) struct LogitBias {
    biases: Vec<(u32, f32)>,
}

impl LogitBias {
    /// `None` if there are none.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        let biases = params.logit_bias.clone();
        (!biases.is_empty()).then_some(Self { biases })
    }
}

impl Stage for LogitBias {
    fn adjust(&mut self, logits: &mut [f32]) {
        for &(token, bias) in &self.biases {
            let Some(logit) = logits.get_mut(token as usize) else {
                continue;
            };
            // A logit of minus infinity is kept: the sum of opposite infinities would be NaN.
            if *logit > f32::NEG_INFINITY {
                *logit = if bias.is_infinite() {
                    bias
                } else {
                    *logit + bias
                };
            }
        }
    }
}

/// One entry with `bias` for every token of `text`, for [`SamplerParams::logit_bias`]. `text` may
/// contain control tokens.
///
/// # Errors
/// The text has bytes without a token.
pub fn text_bias(
    tokenizer: &Tokenizer,
    text: &str,
    bias: f32,
) -> Result<Vec<(u32, f32)>, TokenizerError> {
    let encode = EncodeOptions {
        add_special: false,
        parse_special: true,
        ..EncodeOptions::default()
    };
    let mut ids = tokenizer.encode(text, encode)?;
    ids.sort_unstable();
    ids.dedup();
    Ok(ids.into_iter().map(|id| (id, bias)).collect())
}
