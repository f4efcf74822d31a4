//! The small models that are embedded in the library.

use std::fmt;

use kovar_formats::Gguf;
use kovar_text::{LanguageModel, ModelOptions};

use crate::devices::DeviceOptions;
use crate::open::{OpenError, load};

/// Aligns the file as its tensors require.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static LLAMA_STORIES: &Aligned<[u8]> = &Aligned(*include_bytes!(
    "../../../models/llama-story-6m/llama-story-6m-q8_0.gguf"
));

static RWKV7_STORIES: &Aligned<[u8]> = &Aligned(*include_bytes!(
    "../../../models/rwkv7-story-6m/rwkv7-story-6m-q8_0.gguf"
));

/// A model of 6 million parameters that writes very short stories.
///
/// It knows 19 plots and turns any beginning into one of them; "Once upon a time" is a good prompt.
/// It was trained for kovar, with the scripts in `models/training`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demo {
    /// A Llama (Q8_0, 6.5 MB) with a context of 512 tokens.
    LlamaStories,
    /// An RWKV-7 (Q8_0, 7.5 MB).
    Rwkv7Stories,
}

impl Demo {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::LlamaStories, Self::Rwkv7Stories];

    /// Its name for `kovar -m`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LlamaStories => "llama-stories",
            Self::Rwkv7Stories => "rwkv7-stories",
        }
    }

    /// The GGUF file.
    pub fn file(self) -> &'static [u8] {
        match self {
            Self::LlamaStories => &LLAMA_STORIES.0,
            Self::Rwkv7Stories => &RWKV7_STORIES.0,
        }
    }

    /// The model, loaded onto the default devices.
    ///
    /// # Errors
    /// The devices cannot be opened or run out of memory.
    pub fn open(self) -> Result<LanguageModel, OpenError> {
        let file = Gguf::from_static(self.file()).map_err(kovar_formats::ModelFileError::from)?;
        load(file, &ModelOptions::default(), &DeviceOptions::default())
    }
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
