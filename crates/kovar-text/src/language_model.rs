//! A model with the tokenizer and the chat template of its file.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_formats::ModelFile;

use crate::architecture::read_architecture;
use crate::generate::{GenerateError, GenerateOptions, Generation, Progress, generate};
use crate::model::{LoadError, Model, ModelOptions, SavedText, SavedTextError, check_writable};
use crate::sampler::{Sampler, SamplerError, SamplerParams};
use crate::template::{ChatTemplate, Message, RenderOptions, TemplateError};
use crate::tokenizer::{EncodeOptions, Tokenizer, TokenizerError, TokenizerSpec};

/// A language model with its tokenizer and chat template.
pub struct LanguageModel {
    /// The network and its context.
    pub model: Model,
    /// The tokenizer of its file.
    pub tokenizer: Tokenizer,
    /// The chat template, read on first use.
    template: Option<ChatTemplate>,
    /// The tokens of the last text: those in the context, and possibly a sampled token after them.
    text: Vec<u32>,
}

/// Why a language model could not be opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageModelError {
    /// The model could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The tokenizer could not be read, or a text could not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokenizer has tokens that the model lacks.
    #[error("the tokenizer has {tokenizer} tokens, the model only {model}")]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokenizer: usize,
        /// Tokens of the model.
        model: usize,
    },
    /// The chat template could not be read or rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The sampling parameters are invalid.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Text could not be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl LanguageModel {
    /// Loads everything in `file`, the model onto `devices`.
    ///
    /// # Errors
    /// See [`LanguageModelError`].
    pub fn load(
        file: impl Into<ModelFile>,
        devices: Vec<Arc<dyn Backend>>,
        options: &ModelOptions,
    ) -> Result<Self, LanguageModelError> {
        // Checked first: a file of another architecture often has an unknown tokenizer as well.
        let file = file.into();
        read_architecture(&file).map_err(LoadError::from)?;
        let tokenizer = Tokenizer::from_spec(TokenizerSpec::from_metadata(file.metadata())?)?;
        let model = Model::load(file, devices, options)?;
        if tokenizer.vocab_len() > model.vocab_len() {
            return Err(LanguageModelError::Vocabulary {
                tokenizer: tokenizer.vocab_len(),
                model: model.vocab_len(),
            });
        }
        Ok(Self {
            model,
            tokenizer,
            template: None,
            text: Vec::new(),
        })
    }

    /// The chat template of its file, or the fallback for its vocabulary. It is read on first use:
    /// a model with an invalid template can still complete texts.
    ///
    /// # Errors
    /// See [`ChatTemplate::for_tokenizer`].
    pub fn template(&mut self) -> Result<&ChatTemplate, TemplateError> {
        template(&mut self.template, &self.tokenizer)
    }

    /// Continues the text `prompt`. The text is passed to `on_progress` as it is generated.
    ///
    /// # Errors
    /// See [`LanguageModelError`].
    pub fn complete(
        &mut self,
        prompt: &str,
        sampling: &SamplerParams,
        options: &GenerateOptions,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Generation, LanguageModelError> {
        let encode = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        let prompt = self.tokenizer.encode(prompt, encode)?;
        self.continue_tokens(&prompt, sampling, options, on_progress)
    }

    /// Answers the last of `messages` through the model's chat template. When a conversation grows
    /// by a turn, only the new tokens are evaluated, provided that the template leaves the
    /// beginning unchanged.
    ///
    /// # Errors
    /// See [`LanguageModelError`].
    pub fn answer(
        &mut self,
        messages: &[Message],
        sampling: &SamplerParams,
        options: &GenerateOptions,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Generation, LanguageModelError> {
        let template = template(&mut self.template, &self.tokenizer)?;
        let text = template.render(messages, RenderOptions::new(&self.tokenizer))?;
        let encode = EncodeOptions {
            parse_special: true,
            ..EncodeOptions::default()
        };
        let prompt = self.tokenizer.encode(&text, encode)?;
        self.continue_tokens(&prompt, sampling, options, on_progress)
    }

    /// The tokens of the last text: the prompt and the generated tokens.
    pub fn text(&self) -> &[u32] {
        &self.text
    }

    /// Appends `more` to the last text and continues it, as if it had not ended. Without a last
    /// text, `more` begins a new one.
    ///
    /// # Errors
    /// See [`LanguageModelError`].
    pub fn continue_text(
        &mut self,
        more: &str,
        sampling: &SamplerParams,
        options: &GenerateOptions,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Generation, LanguageModelError> {
        let last = self.text.last().copied();
        let kind = last.and_then(|last| self.tokenizer.token_type(last));
        let encode = EncodeOptions {
            add_special: last.is_none(),
            parse_special: false,
            // After a special token a new text begins.
            continues: kind.is_some_and(|kind| !kind.is_special()),
        };
        let more = self.tokenizer.encode(more, encode)?;
        let prompt = [&self.text[..], &more].concat();
        self.continue_tokens(&prompt, sampling, options, on_progress)
    }

    /// Whether [`save_text`](Self::save_text) could write to `path`, as far as this can be checked
    /// without a model.
    ///
    /// # Errors
    /// [`SavedTextError::Write`]
    pub fn check_saved_path(path: impl AsRef<Path>) -> Result<(), SavedTextError> {
        check_writable(path.as_ref())
    }

    /// Saves the last text and the state of the model after it to the file at `path`, with a `note`
    /// that [`restore_text`](Self::restore_text) returns. An existing file is replaced once the new
    /// one is complete.
    ///
    /// # Errors
    /// See [`SavedTextError`]. An existing file is then unchanged.
    pub fn save_text(
        &mut self,
        path: impl AsRef<Path>,
        note: impl Into<String>,
    ) -> Result<(), SavedTextError> {
        let text = SavedText {
            tokens: self.text.clone(),
            note: note.into(),
        };
        self.model.save_text(path.as_ref(), &text)
    }

    /// Restores a text that [`save_text`](Self::save_text) saved with this model, and returns the
    /// note. The text continues as it would have continued when it was saved.
    ///
    /// # Errors
    /// See [`SavedTextError`]: a file that is damaged, of another model, with caches of another
    /// dtype, or a text that the context does not hold.
    pub fn restore_text(&mut self, path: impl AsRef<Path>) -> Result<String, SavedTextError> {
        let saved = self.model.restore_text(path.as_ref())?;
        self.text = saved.tokens;
        Ok(saved.note)
    }

    fn continue_tokens(
        &mut self,
        prompt: &[u32],
        sampling: &SamplerParams,
        options: &GenerateOptions,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Generation, LanguageModelError> {
        let mut sampler = Sampler::new(sampling)?;
        let generation = generate(
            &mut self.model,
            &self.tokenizer,
            &mut sampler,
            prompt,
            options,
            on_progress,
        );
        self.text.clear();
        match &generation {
            Ok(generation) => {
                self.text.extend_from_slice(prompt);
                self.text.extend_from_slice(&generation.tokens);
            }
            Err(_) => self.text.extend_from_slice(self.model.tokens()),
        }
        Ok(generation?)
    }
}

/// The template in `kept`, or the tokenizer's template, which is then stored in `kept`.
fn template<'a>(
    kept: &'a mut Option<ChatTemplate>,
    tokenizer: &Tokenizer,
) -> Result<&'a ChatTemplate, TemplateError> {
    let template = match kept.take() {
        Some(template) => template,
        None => ChatTemplate::for_tokenizer(tokenizer)?,
    };
    Ok(kept.insert(template))
}
