//! Opening a model file as a language model.

use std::path::Path;

use kovar_formats::{ModelFile, ModelFileError};
use kovar_text::{LanguageModel, LanguageModelError, ModelOptions};

use crate::devices::{DeviceOptions, DevicesError, devices};

/// Why a model file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The model cannot be read or is damaged.
    #[error(transparent)]
    File(#[from] ModelFileError),
    /// The devices cannot be opened.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The file holds no supported language model, or there is not enough memory for it.
    #[error(transparent)]
    Model(#[from] LanguageModelError),
}

/// Opens the model at `path` on the default devices with the default options. See
/// [`ModelFile::open`] for the formats.
///
/// # Errors
/// See [`OpenError`].
pub fn open(path: impl AsRef<Path>) -> Result<LanguageModel, OpenError> {
    let file = ModelFile::open(path)?;
    load(file, &ModelOptions::default(), &DeviceOptions::default())
}

/// Loads the language model `file` onto the devices that `device_options` select.
///
/// # Errors
/// See [`OpenError`].
pub fn load(
    file: impl Into<ModelFile>,
    model_options: &ModelOptions,
    device_options: &DeviceOptions,
) -> Result<LanguageModel, OpenError> {
    let devices = devices(device_options)?;
    Ok(LanguageModel::load(file, devices, model_options)?)
}
