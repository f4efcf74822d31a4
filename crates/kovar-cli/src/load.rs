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

use crate::args::{ModelSource, RunArgs, devices_error};
use crate::diagnostics::{UsageError, note};
use crate::{format, hints, progress};

/// Opens a model.
///
/// # Errors
/// It cannot be opened, or its format is not supported; the error names it.
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
            // The hint comes last, so the cause is included here.
            Some(hint) => anyhow!("{message}: {:#}; {hint}", anyhow::Error::new(error)),
            None => anyhow::Error::new(error).context(message),
        }
    })
}

/// Loads the network of a file, which need not have a tokenizer.
///
/// # Errors
/// The file's model is not supported, or it does not fit onto the devices.
pub fn model(file: ModelFile, args: &RunArgs) -> anyhow::Result<Model> {
    load(file, args, false, Model::load, |model| (model, None))
}

/// Loads a file's model with its tokenizer, and prints warnings about them.
///
/// # Errors
/// As [`model`], or the tokenizer is damaged.
pub fn language_model(
    file: ModelFile,
    args: &RunArgs,
    quiet: bool,
) -> anyhow::Result<LanguageModel> {
    load(file, args, quiet, LanguageModel::load, |loaded| {
        (&loaded.model, Some(&loaded.tokenizer))
    })
}

fn load<M, E: std::error::Error + Send + Sync + 'static>(
    file: ModelFile,
    args: &RunArgs,
    quiet: bool,
    load: impl FnOnce(ModelFile, Vec<Arc<dyn Backend>>, &ModelOptions) -> Result<M, E>,
    contents: impl Fn(&M) -> (&Model, Option<&Tokenizer>),
) -> anyhow::Result<M> {
    let start = Instant::now();
    if !quiet {
        args.device.warn();
    }
    let Target { devices, options } = Target::new(args)?;
    let size = format::bytes(file.file_len());
    let spinner = progress::spinner(format!("loading {} ({size})", args.model.model));
    let loaded = load(file, devices, &options);
    spinner.finish_and_clear();
    let loaded = loaded.with_context(|| format!("cannot load {}", args.model.model))?;
    let (model, tokenizer) = contents(&loaded);
    let graphs = model.plans().map(Plan::graph);
    args.placement
        .check(graphs, model.session().devices(), quiet)?;
    if !quiet {
        tokenizer.into_iter().for_each(note_warnings);
        note_context(model);
    }
    log(model, args, start);
    Ok(loaded)
}

/// The devices of a command, and the options for loading a model onto them.
pub struct Target {
    pub devices: Vec<Arc<dyn Backend>>,
    pub options: ModelOptions,
}

impl Target {
    /// The devices and options that `args` select.
    ///
    /// # Errors
    /// A device that cannot be opened, or an option that names none of the devices.
    pub fn new(args: &RunArgs) -> anyhow::Result<Self> {
        let devices = kovar::devices(&args.device.options()).map_err(devices_error)?;
        let options = args.options(&devices)?;
        Ok(Self { devices, options })
    }

    /// The ids of the devices.
    pub fn ids(&self) -> Vec<String> {
        let infos = self.devices.iter().map(|device| device.info());
        infos.map(|info| info.id.clone()).collect()
    }
}

/// What the evaluation of `n_tokens` tokens requires of the devices. Nothing is loaded.
///
/// # Errors
/// As [`model`]; a usage error if the context holds fewer tokens.
pub fn forecast(
    file: ModelFile,
    target: &Target,
    args: &RunArgs,
    n_tokens: u32,
) -> anyhow::Result<ModelForecast> {
    let Target { devices, options } = target;
    let forecast = Model::forecast(file, devices.clone(), options, n_tokens as usize);
    forecast.map_err(|error| match error {
        LoadError::StepTokens { .. } => {
            UsageError::new(format!("invalid value for '--tokens': {error}")).into()
        }
        error => anyhow::Error::new(error).context(format!("cannot plan {}", args.model.model)),
    })
}

/// Prints the warnings about a tokenizer. Bytes without a token only matter to texts that contain
/// them (see [`warn_lost_bytes`]), so this warning goes to the log.
pub fn note_warnings(tokenizer: &Tokenizer) {
    for warning in tokenizer.warnings() {
        match warning {
            TokenizerWarning::BytesWithoutToken { .. } => tracing::info!("{warning}"),
            _ => note(format_args!("warning: {warning}")),
        }
    }
}

/// Warns if `text` contains bytes without a token.
pub fn warn_lost_bytes(tokenizer: &Tokenizer, text: &str) {
    for warning in tokenizer.warnings() {
        if let TokenizerWarning::BytesWithoutToken { bytes } = warning
            && let Some(at) = text.bytes().position(|byte| bytes.contains(&byte))
        {
            note(format_args!(
                "warning: the text has bytes without a token in this vocabulary, the first at \
                 byte {at}; they are omitted"
            ));
        }
    }
}

/// Notes that --ctx has no effect if `model` is recurrent.
pub fn note_endless(model: &Model, args: &RunArgs) {
    if args.ctx.is_some() && model.context_len().is_none() {
        note("note: --ctx has no effect: the context of this model is unlimited");
    }
}

fn note_context(model: &Model) {
    let trained = model.trained_context();
    if let Some(context) = model.context_len().filter(|&context| context > trained) {
        note(format_args!(
            "note: the context holds {}, the model was trained for {trained}",
            format::plural(context, "token")
        ));
    }
}

/// Logs the devices, the model, the load time and the context.
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
