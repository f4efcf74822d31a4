//! The file of `--session`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use kovar::{LanguageModel, Message};
use serde::{Deserialize, Serialize};

/// What kind of text a session holds: the note in its file, as JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Of `generate`.
    Text,
    /// Of `chat`: the messages so far.
    Conversation(Vec<Message>),
}

/// A file for the state of a model, or none.
#[derive(Debug)]
pub struct SessionFile(Option<PathBuf>);

impl SessionFile {
    /// The file at `path`, which need not be there yet.
    ///
    /// # Errors
    /// No file can be written there.
    pub fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path {
            LanguageModel::check_session_path(path)?;
        }
        Ok(Self(path.map(Path::to_owned)))
    }

    /// Brings `model` back to the text in the file; `false` if there is no file.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or is not one of this model and of a text.
    pub fn restore_text(&self, model: &mut LanguageModel) -> anyhow::Result<bool> {
        match self.restore(model)? {
            Some((Kind::Conversation(_), path)) => bail!(
                "the session {} is a conversation; `kovar chat` goes on with it",
                path.display()
            ),
            kind => Ok(kind.is_some()),
        }
    }

    /// Brings `model` back to the conversation in the file and gives its messages.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or is not one of this model and of a conversation.
    pub fn restore_messages(
        &self,
        model: &mut LanguageModel,
    ) -> anyhow::Result<Option<Vec<Message>>> {
        match self.restore(model)? {
            Some((Kind::Text, path)) => bail!(
                "the session {} is a text; `kovar generate` goes on with it",
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
        if !exists.with_context(|| format!("cannot open the session {}", path.display()))? {
            return Ok(None);
        }
        let note = model.restore_session(path)?;
        let kind = serde_json::from_str(&note);
        let kind = kind.with_context(|| format!("cannot read the note of {}", path.display()))?;
        Ok(Some((kind, path)))
    }

    /// Saves the text that `model` is in the midst of, if there is a file for it.
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
            model.save_session(path, serde_json::to_string(kind)?)?;
        }
        Ok(())
    }
}
