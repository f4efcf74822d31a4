//! Saved texts: the context of a model in a file, so that a later process can continue it.
//!
//! The format is GGUF: the metadata hold the tokens and the other properties of the text, the
//! tensors hold the states. A file can only be restored by the model that wrote it.

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kovar_core::DType;
use kovar_core::error::CodecError;
use kovar_formats::gguf::{GgufError, GgufWriter};
use kovar_formats::{FileWriteError, Gguf, Metadata, MetadataError, ModelFile};
use kovar_runtime::SessionError;
use twox_hash::XxHash64;

use super::snapshot::{StateBytes, first_rows};
use super::{Checkpoint, Context, Model};

/// The value of `general.architecture` in the file of a saved text. This name and the prefix
/// `session.` of the keys are part of the file format.
const ARCHITECTURE: &str = "kovar-session";
/// The version of the format.
const VERSION: u32 = 2;

mod key {
    pub(super) const ARCHITECTURE: &str = "general.architecture";
    pub(super) const VERSION: &str = "session.version";
    /// The model's fingerprint.
    pub(super) const MODEL: &str = "session.model";
    /// Only for models with caches.
    pub(super) const CACHE_DTYPE: &str = "session.cache_dtype";
    pub(super) const TOKENS: &str = "session.tokens";
    /// How many of the tokens the states hold.
    pub(super) const EVALUATED: &str = "session.evaluated";
    /// How many of the tokens the states of the checkpoint hold.
    pub(super) const CHECKPOINT: &str = "session.checkpoint";
    pub(super) const NOTE: &str = "session.note";
    pub(super) const CHECKSUM: &str = "session.checksum";
}

/// Prefix of the names of states.
const NOW: &str = "now.";
/// Prefix of the names of the checkpoint's states.
const BEFORE: &str = "checkpoint.";

/// A text that a model has not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedText {
    /// Its tokens. The context holds a prefix of them; the last one may not be evaluated yet.
    pub tokens: Vec<u32>,
    /// Data of the caller, returned unchanged.
    pub note: String,
}

/// Why a text could not be saved or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedTextError {
    /// The file cannot be read.
    #[error("cannot read the saved text {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A folder, a pipe or a device.
    #[error("the saved text {} is not a regular file", path.display())]
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// A file of no bytes.
    #[error("the saved text {} is damaged: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is truncated or damaged.
    #[error("{} is not a saved text, or is damaged", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },
    /// A GGUF file with other contents.
    #[error("{} is not a saved text but a GGUF file of architecture `{found}`", path.display())]
    NotASavedText {
        /// The file.
        path: PathBuf,
        /// Its `general.architecture`.
        found: String,
    },
    /// A version of the format that this version of kovar cannot read.
    #[error("{} is a saved text of version {found}; supported is version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Metadata that is missing or of the wrong type.
    #[error("the saved text {} is damaged", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: MetadataError,
    },
    /// The contents differ from those that were written.
    #[error("the saved text {} is damaged: its checksum is wrong", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// A text that another model saved.
    #[error("the text {} was saved with another model", path.display())]
    OtherModel {
        /// The file.
        path: PathBuf,
    },
    /// A text with caches of another dtype.
    #[error(
        "the saved text {} has a cache of {saved}, this model was loaded with one of {loaded}",
        path.display()
    )]
    CacheDType {
        /// The file.
        path: PathBuf,
        /// The dtype in the file.
        saved: String,
        /// The model's.
        loaded: DType,
    },
    /// A text that is longer than the model's context.
    #[error(
        "the saved text {} has {tokens} tokens, the context holds {context}",
        path.display()
    )]
    Context {
        /// The file.
        path: PathBuf,
        /// Tokens of the text.
        tokens: usize,
        /// Tokens that the context holds.
        context: usize,
    },
    /// Counts or tokens that contradict each other or the model.
    #[error("the saved text {} is damaged: {what}", path.display())]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// A state that is missing, or whose dims or dtype differ from the model's.
    #[error("the saved text {} is damaged: state `{state}` is missing or has the wrong shape", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The state's name.
        state: String,
    },
    /// A tensor of the model cannot be read, so the fingerprint cannot be computed.
    #[error("the model's fingerprint cannot be computed")]
    Fingerprint(#[source] CodecError),
    /// The states cannot be read from the device or written to it.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The file cannot be written; an existing one is unchanged.
    #[error("cannot write the saved text {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: FileWriteError,
    },
}

impl Model {
    /// Writes the context and `text`, whose prefix it holds, to the file at `path`. An existing
    /// file is replaced once the new one is complete. Only the used rows of caches are written.
    ///
    /// # Errors
    /// See [`SavedTextError`].
    pub fn save_text(&mut self, path: &Path, text: &SavedText) -> Result<(), SavedTextError> {
        if !text.tokens.starts_with(&self.tokens) {
            return Err(SavedTextError::Inconsistent {
                path: path.to_owned(),
                what: "the text does not begin with the tokens in the context",
            });
        }
        let fingerprint = fingerprint(&self.file).map_err(SavedTextError::Fingerprint)?;
        let states = self.read_states()?;
        let checkpoint = match &self.context {
            Context::States { checkpoint, .. } => checkpoint.as_ref(),
            Context::Caches { .. } => None,
        };
        let header = Header {
            fingerprint,
            cache_dtype: self.cache_dtype().map(|dtype| dtype.name().to_owned()),
            evaluated: self.tokens.len(),
            checkpoint: checkpoint.map(|checkpoint| checkpoint.tokens),
            text: text.clone(),
        };
        let before = checkpoint.map_or(&[][..], |checkpoint| &checkpoint.states);
        let checksum = header.checksum(&states, before);
        let writer = header.writer(checksum, &states, before);
        let written = writer.and_then(|writer| writer.write_file(path));
        written.map_err(|source| SavedTextError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// Replaces the context by the one in the file at `path`, and returns the text. Evaluating the
    /// rest of the text gives the same results as it would have given when the text was saved.
    ///
    /// # Errors
    /// See [`SavedTextError`]. The context is unchanged, unless the device fails.
    pub fn restore_text(&mut self, path: &Path) -> Result<SavedText, SavedTextError> {
        // Checked before opening: opening a pipe would wait for a writer.
        let found = fs::metadata(path).map_err(|source| SavedTextError::Read {
            path: path.to_owned(),
            source,
        })?;
        let path_buf = || path.to_owned();
        if !found.is_file() {
            return Err(SavedTextError::NotAFile { path: path_buf() });
        }
        if found.len() == 0 {
            return Err(SavedTextError::Empty { path: path_buf() });
        }
        // Mapped, so that a large file needs no memory before it is known to fit the model.
        let file = Gguf::open(path).map_err(|source| SavedTextError::Gguf {
            path: path_buf(),
            source,
        })?;
        let opened = Opened { path, file: &file };
        let header = opened.header()?;
        if fingerprint(&self.file).map_err(SavedTextError::Fingerprint)? != header.fingerprint {
            return Err(SavedTextError::OtherModel {
                path: path.to_owned(),
            });
        }
        match (self.cache_dtype(), &header.cache_dtype) {
            (Some(loaded), Some(saved)) if loaded.name() != saved => {
                return Err(SavedTextError::CacheDType {
                    path: path.to_owned(),
                    saved: saved.clone(),
                    loaded,
                });
            }
            _ => {}
        }
        let tokens = &header.text.tokens;
        if let Some(context) = self.context_len().filter(|&most| tokens.len() > most) {
            return Err(SavedTextError::Context {
                path: path.to_owned(),
                tokens: tokens.len(),
                context,
            });
        }
        if tokens
            .iter()
            .any(|&token| token as usize >= self.vocab_len())
        {
            return Err(opened.inconsistent("a token is not in the vocabulary"));
        }
        let evaluated = tokens.get(..header.evaluated);
        let evaluated = evaluated.ok_or_else(|| opened.inconsistent("tokens are missing"))?;
        let states = self.states_of(&opened, NOW, header.evaluated)?;
        let before = match header.checkpoint {
            Some(tokens) if tokens > header.evaluated || self.context_len().is_some() => {
                return Err(opened.inconsistent("its checkpoint is impossible"));
            }
            Some(tokens) => Some(Checkpoint {
                tokens,
                states: self.states_of(&opened, BEFORE, tokens)?,
            }),
            None => None,
        };
        self.write_states(evaluated, &states, before)?;
        Ok(header.text)
    }

    /// The model's states from a file, where their names begin with `prefix`.
    fn states_of(
        &self,
        opened: &Opened<'_>,
        prefix: &str,
        tokens: usize,
    ) -> Result<Vec<StateBytes>, SavedTextError> {
        let rows = match self.context {
            Context::Caches { .. } => tokens,
            Context::States { .. } => usize::MAX,
        };
        let mut states = Vec::new();
        for state in self.session.states() {
            let (dims, size) = first_rows(&state, rows);
            if size == 0 {
                continue;
            }
            let found = opened.file.tensor(&format!("{prefix}{}", state.name));
            let fits = found.filter(|found| found.dtype() == state.dtype && found.dims() == dims);
            let found = fits.ok_or_else(|| SavedTextError::State {
                path: opened.path.to_owned(),
                state: state.name.clone(),
            })?;
            states.push(StateBytes {
                name: state.name,
                dtype: state.dtype,
                dims,
                bytes: found.bytes().as_slice().to_vec(),
            });
        }
        Ok(states)
    }
}

/// The contents of a saved text besides its states.
struct Header {
    fingerprint: u64,
    cache_dtype: Option<String>,
    evaluated: usize,
    checkpoint: Option<usize>,
    text: SavedText,
}

impl Header {
    fn writer(
        &self,
        checksum: u64,
        states: &[StateBytes],
        before: &[StateBytes],
    ) -> Result<GgufWriter, FileWriteError> {
        let mut writer = GgufWriter::new();
        writer
            .metadata(key::ARCHITECTURE, ARCHITECTURE)?
            .metadata(key::VERSION, VERSION)?
            .metadata(key::MODEL, self.fingerprint)?;
        if let Some(dtype) = &self.cache_dtype {
            writer.metadata(key::CACHE_DTYPE, dtype.as_str())?;
        }
        writer
            .metadata(key::TOKENS, self.text.tokens.clone())?
            .metadata(key::EVALUATED, self.evaluated as u64)?;
        if let Some(tokens) = self.checkpoint {
            writer.metadata(key::CHECKPOINT, tokens as u64)?;
        }
        writer
            .metadata(key::NOTE, self.text.note.as_str())?
            .metadata(key::CHECKSUM, checksum)?;
        for (prefix, states) in [(NOW, states), (BEFORE, before)] {
            for state in states.iter().filter(|state| !state.bytes.is_empty()) {
                let name = format!("{prefix}{}", state.name);
                writer.tensor(name, state.dtype, &state.dims, state.bytes.clone())?;
            }
        }
        Ok(writer)
    }

    /// XXH64 of the numbers and strings, the tokens and all states, in the order of the file.
    fn checksum(&self, states: &[StateBytes], before: &[StateBytes]) -> u64 {
        let mut hash = self.hasher();
        for state in states.iter().chain(before) {
            hash.write(&state.bytes);
        }
        hash.finish()
    }

    /// The checksum before the states are added.
    fn hasher(&self) -> XxHash64 {
        let mut hash = XxHash64::with_seed(VERSION.into());
        let count = |count: usize| (count as u64).to_le_bytes();
        hash.write(&self.fingerprint.to_le_bytes());
        hash.write(&count(self.evaluated));
        hash.write(&count(self.checkpoint.unwrap_or(usize::MAX)));
        for text in [self.cache_dtype.as_deref().unwrap_or(""), &self.text.note] {
            hash.write(&count(text.len()));
            hash.write(text.as_bytes());
        }
        hash.write(&count(self.text.tokens.len()));
        for token in &self.text.tokens {
            hash.write(&token.to_le_bytes());
        }
        hash
    }
}

/// An open file whose states have not been read.
struct Opened<'a> {
    path: &'a Path,
    file: &'a Gguf,
}

impl Opened<'_> {
    /// The header, after comparing the checksum of the whole file.
    fn header(&self) -> Result<Header, SavedTextError> {
        let metadata = self.file.metadata();
        let damaged = |source| SavedTextError::Metadata {
            path: self.path.to_owned(),
            source,
        };
        let architecture = metadata.require_str(key::ARCHITECTURE).map_err(damaged)?;
        if architecture != ARCHITECTURE {
            return Err(SavedTextError::NotASavedText {
                path: self.path.to_owned(),
                found: architecture.to_owned(),
            });
        }
        let found = metadata.require_u32(key::VERSION).map_err(damaged)?;
        if found != VERSION {
            return Err(SavedTextError::Version {
                path: self.path.to_owned(),
                found,
            });
        }
        let (header, checksum) = read(metadata).map_err(damaged)?;
        let mut hash = header.hasher();
        for tensor in self.file.tensors() {
            hash.write(tensor.bytes().as_slice());
        }
        if checksum != Some(hash.finish()) {
            return Err(SavedTextError::Checksum {
                path: self.path.to_owned(),
            });
        }
        Ok(header)
    }

    fn inconsistent(&self, what: &'static str) -> SavedTextError {
        SavedTextError::Inconsistent {
            path: self.path.to_owned(),
            what,
        }
    }
}

/// The header, and the checksum stored in the file.
fn read(metadata: &Metadata) -> Result<(Header, Option<u64>), MetadataError> {
    let header = Header {
        fingerprint: metadata.get_u64(key::MODEL)?.unwrap_or(0),
        cache_dtype: metadata.get_str(key::CACHE_DTYPE)?.map(str::to_owned),
        evaluated: metadata.require_usize(key::EVALUATED)?,
        checkpoint: metadata.get_usize(key::CHECKPOINT)?,
        text: SavedText {
            tokens: metadata.get_u32_array(key::TOKENS)?.unwrap_or_default(),
            note: metadata.require_str(key::NOTE)?.to_owned(),
        },
    };
    Ok((header, metadata.get_u64(key::CHECKSUM)?))
}

/// Checks whether a text can be saved at `path`.
pub(crate) fn check_writable(path: &Path) -> Result<(), SavedTextError> {
    GgufWriter::check_writable(path).map_err(|source| SavedTextError::Write {
        path: path.to_owned(),
        source,
    })
}

/// A number that distinguishes models: XXH64 of the metadata of the architecture and vocabulary, of
/// the names, dtypes and dims of all tensors, and of a few samples of each tensor's data.
fn fingerprint(file: &ModelFile) -> Result<u64, CodecError> {
    const SAMPLES: usize = 8;
    const SAMPLE_BYTES: usize = 64;
    let mut hash = XxHash64::with_seed(0);
    let architecture = file.metadata().get_str(key::ARCHITECTURE).ok().flatten();
    let architecture = format!("{}.", architecture.unwrap_or_default());
    let entries = file.metadata().iter();
    let mut entries: Vec<_> = entries
        .filter(|(key, _)| key.starts_with(&architecture) || key.starts_with("tokenizer.ggml."))
        .collect();
    // Files of the same model may have them in any order.
    entries.sort_unstable_by_key(|&(key, _)| key);
    let mut encoded = Vec::new();
    for (key, value) in entries {
        encoded.clear();
        encoded.extend_from_slice(key.as_bytes());
        value.append_to(&mut encoded);
        hash.write(&encoded);
    }
    for tensor in file.tensors() {
        hash.write(tensor.name().as_bytes());
        hash.write(tensor.dtype().name().as_bytes());
        for &dim in tensor.dims() {
            hash.write(&(dim as u64).to_le_bytes());
        }
        let bytes = tensor.bytes()?;
        let bytes = bytes.as_slice();
        let last = bytes.len().saturating_sub(SAMPLE_BYTES);
        for sample in 0..SAMPLES {
            let start = last / (SAMPLES - 1) * sample;
            let end = bytes.len().min(start + SAMPLE_BYTES);
            hash.write(bytes.get(start..end).unwrap_or_default());
        }
    }
    Ok(hash.finish())
}
