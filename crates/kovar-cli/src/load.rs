//! Opening model files.

use std::path::Path;

use anyhow::{Context, bail};
use kovar::{Gguf, LanguageModel, Model, OpenError};

use crate::args::{ModelSource, RunArgs, devices_error};
use crate::diagnostics::note;
use crate::{format, progress};

/// Opens the file of a model.
///
/// # Errors
/// It cannot be opened or is no GGUF file; the error names it.
pub fn open(source: &ModelSource) -> anyhow::Result<Gguf> {
    match source {
        ModelSource::Demo => Ok(Gguf::from_static(kovar::demo::llama_stories())?),
        ModelSource::File(path) => open_file(path),
    }
}

fn open_file(path: &Path) -> anyhow::Result<Gguf> {
    let name = path.display();
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
    if metadata.is_dir() {
        bail!("{name} is a directory, expected a GGUF file");
    }
    if !metadata.is_file() {
        bail!("{name} is not a regular file, expected a GGUF file");
    }
    if metadata.len() == 0 {
        bail!("{name} is empty, expected a GGUF file");
    }
    Gguf::open(path).with_context(|| format!("cannot read {name}"))
}

/// Loads the network of a file, which need not have a tokenizer.
///
/// # Errors
/// The file holds no model that kovar runs, or the device does not take it.
pub fn model(file: Gguf, args: &RunArgs) -> anyhow::Result<Model> {
    let devices = kovar::devices(&args.device.options()).map_err(devices_error)?;
    let spinner = progress::spinner(loading(&file, args));
    let loaded = Model::load(file, devices, &args.options());
    spinner.finish_and_clear();
    loaded.with_context(|| cannot_load(args))
}

/// Loads a file's model with its tokenizer and template, and tells of what is odd about them.
///
/// # Errors
/// As [`model`], or the tokenizer or template is damaged.
pub fn language_model(file: Gguf, args: &RunArgs, quiet: bool) -> anyhow::Result<LanguageModel> {
    let spinner = progress::spinner(loading(&file, args));
    let loaded = kovar::load(file, &args.options(), &args.device.options());
    spinner.finish_and_clear();
    let model = loaded.map_err(|error| match error {
        OpenError::Devices(error) => devices_error(error),
        error => anyhow::Error::new(error).context(cannot_load(args)),
    })?;
    if !quiet {
        for warning in model.tokenizer.warnings() {
            note(format_args!("warning: {warning}"));
        }
    }
    Ok(model)
}

fn loading(file: &Gguf, args: &RunArgs) -> String {
    let size = format::bytes(file.file_len() as u64);
    format!("loading {} ({size})", args.model.model)
}

fn cannot_load(args: &RunArgs) -> String {
    format!("cannot load {}", args.model.model)
}
