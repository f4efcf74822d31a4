//! The small model that comes with the library.

use kovar_formats::{Gguf, ModelFileError};
use kovar_text::{LanguageModel, ModelOptions};

use crate::devices::DeviceOptions;
use crate::open::{OpenError, load};

/// Gives the file the alignment that its tensors expect from the start of a page.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static LLAMA_STORIES: &Aligned<[u8]> = &Aligned(*include_bytes!(
    "../../../models/llama-story-6m/llama-story-6m-q8_0.gguf"
));

/// The GGUF file of a 6-million-parameter Llama that writes very short stories (Q8_0, 6.5 MB).
///
/// It knows 19 plots and bends other beginnings into one of them; "Once upon a time" is a good one.
/// Its context is 512 tokens. It was made for kovar; `models/training` has the scripts.
pub fn llama_stories() -> &'static [u8] {
    &LLAMA_STORIES.0
}

/// [`llama_stories`], ready to write on the default devices.
///
/// # Errors
/// The devices cannot be made or run out of memory.
pub fn open() -> Result<LanguageModel, OpenError> {
    let file = Gguf::from_static(llama_stories()).map_err(ModelFileError::from)?;
    load(file, &ModelOptions::default(), &DeviceOptions::default())
}
