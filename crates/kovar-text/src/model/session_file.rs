//! The context of a model in a file, so that a later run goes on where an earlier one ended.
//!
//! The file is GGUF: the text's tokens and what else belongs to it in the metadata, the states as
//! tensors. It fits only the model that it was written by.

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

/// The value of `general.architecture` in a session file.
const ARCHITECTURE: &str = "kovar-session";
/// The version of the format.
const VERSION: u32 = 2;

mod key {
    pub(super) const ARCHITECTURE: &str = "general.architecture";
    pub(super) const VERSION: &str = "session.version";
    /// The model's fingerprint.
    pub(super) const MODEL: &str = "session.model";
    /// Of caches only.
    pub(super) const CACHE_DTYPE: &str = "session.cache_dtype";
    pub(super) const TOKENS: &str = "session.tokens";
    /// How many of the tokens the states hold.
    pub(super) const EVALUATED: &str = "session.evaluated";
    /// How many of the tokens the states of the checkpoint hold.
    pub(super) const CHECKPOINT: &str = "session.checkpoint";
    pub(super) const NOTE: &str = "session.note";
    pub(super) const CHECKSUM: &str = "session.checksum";
}

/// What the names of states begin with.
const NOW: &str = "now.";
/// What the names of the states of the checkpoint begin with.
const BEFORE: &str = "checkpoint.";

/// A text that a model was in the midst of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedText {
    /// Its tokens. Those in the context are the first of them; the last may not be evaluated yet.
    pub tokens: Vec<u32>,
    /// What the caller wants to know again.
    pub note: String,
}

/// Why a session could not be saved or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionFileError {
    /// The file cannot be read.
    #[error("cannot read the session {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A folder, a pipe or a device.
    #[error("the session {} is not a regular file", path.display())]
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// A file of no bytes.
    #[error("the session {} is damaged: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is cut short or damaged.
    #[error("{} is no session file, or damaged", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },
    /// A GGUF file of something else.
    #[error("{} is no session file but a GGUF file of `{found}`", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// Its `general.architecture`.
        found: String,
    },
    /// A version of the format that this version of kovar doesn't read.
    #[error("{} is a session file of version {found}, version {VERSION} is known", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Metadata that is missing or of a wrong kind.
    #[error("the session {} is damaged", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: MetadataError,
    },
    /// The contents are not those that were written.
    #[error("the session {} is damaged: its checksum is wrong", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// The session of another model.
    #[error("the session {} was saved with another model", path.display())]
    OtherModel {
        /// The file.
        path: PathBuf,
    },
    /// A session with caches of another number type.
    #[error(
        "the session {} has a cache of {saved}, this model was loaded with one of {loaded}",
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
        "the text of the session {} has {tokens} tokens, the context holds {context}",
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
    #[error("the session {} is damaged: {what}", path.display())]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// A state that is missing or of other dims or another dtype than the model's.
    #[error("the session {} is damaged: state `{state}` is missing or of a wrong shape", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The state's name.
        state: String,
    },
    /// A tensor of the model, from which its fingerprint is made, cannot be read.
    #[error("the model's fingerprint cannot be made")]
    Fingerprint(#[source] CodecError),
    /// The states cannot be read from the device or written to it.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The file cannot be written; one that is there stays.
    #[error("cannot write the session {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: FileWriteError,
    },
}

impl Model {
    /// Writes the context and `text`, of which it holds the beginning, to the file at `path`. A file
    /// that is there is replaced once the new one is whole. Of caches only the rows in use are
    /// written.
    ///
    /// # Errors
    /// See [`SessionFileError`].
    pub fn save_session(&mut self, path: &Path, text: &SavedText) -> Result<(), SessionFileError> {
        if !text.tokens.starts_with(&self.tokens) {
            return Err(SessionFileError::Inconsistent {
                path: path.to_owned(),
                what: "the text does not begin with the tokens in the context",
            });
        }
        let fingerprint = fingerprint(&self.file).map_err(SessionFileError::Fingerprint)?;
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
        written.map_err(|source| SessionFileError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// Replaces the context by the one in the file at `path`, and returns the text that it was in
    /// the midst of. Evaluating the rest of the text gives what it would have given then.
    ///
    /// # Errors
    /// See [`SessionFileError`]. The context stays as it is, unless the device fails.
    pub fn restore_session(&mut self, path: &Path) -> Result<SavedText, SessionFileError> {
        // Before it is opened: that of a pipe would wait for a writer.
        let found = fs::metadata(path).map_err(|source| SessionFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        let path_buf = || path.to_owned();
        if !found.is_file() {
            return Err(SessionFileError::NotAFile { path: path_buf() });
        }
        if found.len() == 0 {
            return Err(SessionFileError::Empty { path: path_buf() });
        }
        // Mapped, so that a file of any size takes no memory before it is known to fit the model.
        let file = Gguf::open(path).map_err(|source| SessionFileError::Gguf {
            path: path_buf(),
            source,
        })?;
        let opened = Opened { path, file: &file };
        let header = opened.header()?;
        if fingerprint(&self.file).map_err(SessionFileError::Fingerprint)? != header.fingerprint {
            return Err(SessionFileError::OtherModel {
                path: path.to_owned(),
            });
        }
        match (self.cache_dtype(), &header.cache_dtype) {
            (Some(loaded), Some(saved)) if loaded.name() != saved => {
                return Err(SessionFileError::CacheDType {
                    path: path.to_owned(),
                    saved: saved.clone(),
                    loaded,
                });
            }
            _ => {}
        }
        let tokens = &header.text.tokens;
        if let Some(context) = self.context_len().filter(|&most| tokens.len() > most) {
            return Err(SessionFileError::Context {
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
                return Err(opened.inconsistent("its checkpoint cannot be"));
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

    /// The model's states out of a file in which their names begin with `prefix`.
    fn states_of(
        &self,
        opened: &Opened<'_>,
        prefix: &str,
        tokens: usize,
    ) -> Result<Vec<StateBytes>, SessionFileError> {
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
            let found = fits.ok_or_else(|| SessionFileError::State {
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

/// What a session file says besides its states.
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

    /// XXH64 of the numbers and texts, of the tokens and of all states, in the order of the file.
    fn checksum(&self, states: &[StateBytes], before: &[StateBytes]) -> u64 {
        let mut hash = self.hasher();
        for state in states.iter().chain(before) {
            hash.write(&state.bytes);
        }
        hash.finish()
    }

    /// The checksum up to the states.
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

/// A session file whose states are yet to be looked at.
struct Opened<'a> {
    path: &'a Path,
    file: &'a Gguf,
}

impl Opened<'_> {
    /// The header, and the checksum of everything compared.
    fn header(&self) -> Result<Header, SessionFileError> {
        let metadata = self.file.metadata();
        let damaged = |source| SessionFileError::Metadata {
            path: self.path.to_owned(),
            source,
        };
        let architecture = metadata.require_str(key::ARCHITECTURE).map_err(damaged)?;
        if architecture != ARCHITECTURE {
            return Err(SessionFileError::NotASession {
                path: self.path.to_owned(),
                found: architecture.to_owned(),
            });
        }
        let found = metadata.require_u32(key::VERSION).map_err(damaged)?;
        if found != VERSION {
            return Err(SessionFileError::Version {
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
            return Err(SessionFileError::Checksum {
                path: self.path.to_owned(),
            });
        }
        Ok(header)
    }

    fn inconsistent(&self, what: &'static str) -> SessionFileError {
        SessionFileError::Inconsistent {
            path: self.path.to_owned(),
            what,
        }
    }
}

/// The header, and the checksum that the file states.
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

/// Whether a session can be saved at `path`.
pub(crate) fn check_place(path: &Path) -> Result<(), SessionFileError> {
    GgufWriter::check_writable(path).map_err(|source| SessionFileError::Write {
        path: path.to_owned(),
        source,
    })
}

/// A number that tells models apart: XXH64 of the metadata of its architecture and vocabulary, of the
/// names, dtypes and dims of all tensors and of a few pieces of each one's data.
fn fingerprint(file: &ModelFile) -> Result<u64, CodecError> {
    const PIECES: usize = 8;
    const PIECE: usize = 64;
    let mut hash = XxHash64::with_seed(0);
    let architecture = file.metadata().get_str(key::ARCHITECTURE).ok().flatten();
    let architecture = format!("{}.", architecture.unwrap_or_default());
    let entries = file.metadata().iter();
    let mut entries: Vec<_> = entries
        .filter(|(key, _)| key.starts_with(&architecture) || key.starts_with("tokenizer.ggml."))
        .collect();
    // Files of one model may have them in any order.
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
        let last = bytes.len().saturating_sub(PIECE);
        for piece in 0..PIECES {
            let start = last / (PIECES - 1) * piece;
            let end = bytes.len().min(start + PIECE);
            hash.write(bytes.get(start..end).unwrap_or_default());
        }
    }
    Ok(hash.finish())
}
