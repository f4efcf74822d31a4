//! Opening model files.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use kovar::text::{ModelForecast, TokenizerWarning};
use kovar::{
    Backend, Gguf, LanguageModel, LoadError, Model, ModelFile, ModelFileError, ModelOptions, Plan,
    Tokenizer,
};

use crate::args::{ModelSource, RunArgs};
use crate::diagnostics::{UsageError, note};
use crate::{format, hints, progress};

/// Opens a model.
///
/// # Errors
/// It cannot be opened or is of no form that kovar reads; the error names it.
pub fn open(source: &ModelSource) -> anyhow::Result<ModelFile> {
    match source {
        ModelSource::Demo(demo) => Ok(Gguf::from_static(demo.file())?.into()),
        ModelSource::File(path) => open_path(path),
    }
}

fn open_path(path: &Path) -> anyhow::Result<ModelFile> {
    ModelFile::open(path).map_err(|error| {
        if let ModelFileError::Open { .. } | ModelFileError::Kind { .. } = error {
            return error.into();
        }
        let hint = hints::damaged_file(&error);
        let message = format!("cannot read {}", path.display());
        match hint {
            // The hint goes last, so the cause is told here.
            Some(hint) => anyhow!("{message}: {:#}; {hint}", anyhow::Error::new(error)),
            None => anyhow::Error::new(error).context(message),
        }
    })
}

/// Loads the network of a file, which need not have a tokenizer.
///
/// # Errors
/// The file holds no model that kovar runs, or the device does not take it.
pub fn model(file: ModelFile, args: &RunArgs) -> anyhow::Result<Model> {
    let start = Instant::now();
    args.device.warn();
    let devices = args.devices()?;
    let options = args.options(&devices)?;
    let spinner = progress::spinner(loading(&file, args));
    let loaded = Model::load(file, devices, &options);
    spinner.finish_and_clear();
    let model = loaded.with_context(|| cannot_load(args))?;
    check_placement(&model, args, false)?;
    tell_context(&model);
    log(&model, args, start);
    Ok(model)
}

/// Loads a file's model with its tokenizer and template, and tells of what is odd about them.
///
/// # Errors
/// As [`model`], or the tokenizer or template is damaged.
pub fn language_model(
    file: ModelFile,
    args: &RunArgs,
    quiet: bool,
) -> anyhow::Result<LanguageModel> {
    let start = Instant::now();
    if !quiet {
        args.device.warn();
    }
    let devices = args.devices()?;
    let options = args.options(&devices)?;
    let spinner = progress::spinner(loading(&file, args));
    let loaded = LanguageModel::load(file, devices, &options);
    spinner.finish_and_clear();
    let model = loaded.with_context(|| cannot_load(args))?;
    check_placement(&model.model, args, quiet)?;
    if !quiet {
        tell_warnings(&model.tokenizer);
        tell_context(&model.model);
    }
    log(&model.model, args, start);
    Ok(model)
}

/// What the evaluation of `n_tokens` tokens asks of the devices; nothing is loaded.
///
/// # Errors
/// As [`model`]; a usage error for more tokens than the context holds.
pub fn forecast(
    file: ModelFile,
    devices: Vec<Arc<dyn Backend>>,
    options: &ModelOptions,
    args: &RunArgs,
    n_tokens: u32,
) -> anyhow::Result<ModelForecast> {
    Model::forecast(file, devices, options, n_tokens as usize).map_err(|error| match error {
        LoadError::StepTokens { .. } => {
            UsageError::new(format!("invalid value for '--tokens': {error}")).into()
        }
        error => anyhow::Error::new(error).context(format!("cannot plan {}", args.model.model)),
    })
}

/// Tells of what is odd about a tokenizer. That bytes have no token matters only to a text that
/// holds them, see [`tell_lost_bytes`], so otherwise it goes to the log.
pub fn tell_warnings(tokenizer: &Tokenizer) {
    for warning in tokenizer.warnings() {
        match warning {
            TokenizerWarning::BytesWithoutToken { .. } => tracing::info!("{warning}"),
            _ => note(format_args!("warning: {warning}")),
        }
    }
}

/// Tells if `text` holds bytes that have no token.
pub fn tell_lost_bytes(tokenizer: &Tokenizer, text: &str) {
    for warning in tokenizer.warnings() {
        if let TokenizerWarning::BytesWithoutToken { bytes } = warning
            && let Some(at) = text.bytes().position(|byte| bytes.contains(&byte))
        {
            note(format_args!(
                "warning: the text has bytes without a token in this vocabulary, the first at \
                 byte {at}; they are left out"
            ));
        }
    }
}

/// Tells if a --ctx that limits the context of others makes no difference to `model`.
pub fn tell_endless(model: &Model, args: &RunArgs) {
    if args.ctx.is_some() && model.context_len().is_none() {
        note("note: --ctx makes no difference, the context of this model has no end");
    }
}

fn check_placement(model: &Model, args: &RunArgs, quiet: bool) -> anyhow::Result<()> {
    let graphs = model.plans().map(Plan::graph);
    let devices = model.session().devices();
    Ok(args.placement.check(graphs, devices, quiet)?)
}

fn tell_context(model: &Model) {
    let trained = model.trained_context();
    if let Some(context) = model.context_len().filter(|&context| context > trained) {
        note(format_args!(
            "note: the context holds {}, the model was trained for {trained}",
            format::plural(context, "token")
        ));
    }
}

/// What was loaded, where and how long it took.
fn log(model: &Model, args: &RunArgs, start: Instant) {
    let file = model.file();
    for device in model.session().devices() {
        let info = device.info();
        let (device, name) = (&info.id, &info.name);
        let (threads, features) = (info.threads.unwrap_or(1), info.features.join(", "));
        tracing::info!(device, name, threads, features, "device");
    }
    tracing::info!(
        model = %args.model.model,
        tensors = file.tensors().len(),
        size = format::bytes(file.file_len()),
        time = format::duration(start.elapsed()),
        "loaded"
    );
    tracing::info!(
        tokens = model.context_len(),
        trained = model.trained_context(),
        cache = model.cache_dtype().map(|dtype| dtype.name()),
        "context"
    );
}

fn loading(file: &ModelFile, args: &RunArgs) -> String {
    let size = format::bytes(file.file_len());
    format!("loading {} ({size})", args.model.model)
}

fn cannot_load(args: &RunArgs) -> String {
    format!("cannot load {}", args.model.model)
}
