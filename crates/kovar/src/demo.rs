//! The small models that come with the library.

use std::fmt;

use kovar_formats::Gguf;
use kovar_text::{LanguageModel, ModelOptions};

use crate::devices::DeviceOptions;
use crate::open::{OpenError, load};

/// Gives the file the alignment that its tensors expect from the start of a page.
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
/// It knows 19 plots and bends other beginnings into one of them; "Once upon a time" is a good one.
/// It was made for kovar; `models/training` has the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demo {
    /// A Llama (Q8_0, 6.5 MB), its context 512 tokens.
    LlamaStories,
    /// An RWKV-7 (Q8_0, 7.5 MB).
    Rwkv7Stories,
}

impl Demo {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::LlamaStories, Self::Rwkv7Stories];

    /// The name that `kovar -m` takes.
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

    /// The model, ready to write on the default devices.
    ///
    /// # Errors
    /// The devices cannot be made or run out of memory.
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

/// The file of [`Demo::LlamaStories`].
pub fn llama_stories() -> &'static [u8] {
    Demo::LlamaStories.file()
}
