//! The file of `--saved`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use kovar::{LanguageModel, Message};
use serde::{Deserialize, Serialize};

/// The kind of a saved text: the note in its file, as JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Saved by `generate`.
    Text,
    /// Saved by `chat`: the messages so far.
    Conversation(Vec<Message>),
}

/// The file of a saved text, or none.
#[derive(Debug)]
pub struct SavedFile(Option<PathBuf>);

impl SavedFile {
    /// The file at `path`, which need not exist yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path {
            LanguageModel::check_saved_path(path)?;
        }
        Ok(Self(path.map(Path::to_owned)))
    }

    /// Restores the text in the file; `false` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, was saved with another model, or holds a conversation.
    pub fn restore_text(&self, model: &mut LanguageModel) -> anyhow::Result<bool> {
        match self.restore(model)? {
            Some((Kind::Conversation(_), path)) => bail!(
                "the saved text {} is a conversation; `kovar chat` continues it",
                path.display()
            ),
            kind => Ok(kind.is_some()),
        }
    }

    /// Restores the conversation in the file and returns its messages.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, was saved with another model, or does not hold a
    /// conversation.
    pub fn restore_messages(
        &self,
        model: &mut LanguageModel,
    ) -> anyhow::Result<Option<Vec<Message>>> {
        match self.restore(model)? {
            Some((Kind::Text, path)) => bail!(
                "the saved text {} is not a conversation; `kovar generate` continues it",
                path.display()
            ),
            Some((Kind::Conversation(messages), _)) => Ok(Some(messages)),
            None => Ok(None),
        }
    }

    fn restore(&self, model: &mut LanguageModel) -> anyhow::Result<Option<(Kind, &Path)>> {
        let Some(path) = self.0.as_deref() else {
            return Ok(None);
        };
        let exists = path.try_exists();
        if !exists.with_context(|| format!("cannot open the saved text {}", path.display()))? {
            return Ok(None);
        }
        let note = model.restore_text(path)?;
        let kind = serde_json::from_str(&note);
        let kind = kind.with_context(|| format!("cannot read the note of {}", path.display()))?;
        Ok(Some((kind, path)))
    }

    /// Saves the text of `model`, if there is a file for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_text(&self, model: &mut LanguageModel) -> anyhow::Result<()> {
        self.save(model, &Kind::Text)
    }

    /// Saves the conversation of `messages`, if there is a file for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_messages(
        &self,
        model: &mut LanguageModel,
        messages: &[Message],
    ) -> anyhow::Result<()> {
        self.save(model, &Kind::Conversation(messages.to_vec()))
    }

    fn save(&self, model: &mut LanguageModel, kind: &Kind) -> anyhow::Result<()> {
        if let Some(path) = &self.0 {
            model.save_text(path, serde_json::to_string(kind)?)?;
        }
        Ok(())
    }
}
