//! Hints that follow error messages.

use anyhow::anyhow;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kovar::gguf::SplitError;
use kovar::{
    CompileError, EvalError, GenerateError, GgufError, LanguageModelError, Model, ModelFileError,
    PlaceError,
};

use crate::commands::Cli;
use crate::format;

/// `error`, with a hint if the context of `model` was too small. `can_reset`: there are earlier
/// turns that can be cleared.
pub fn context_full(error: anyhow::Error, model: &Model, can_reset: bool) -> anyhow::Error {
    let evaluation = match error.downcast_ref::<LanguageModelError>() {
        Some(LanguageModelError::Generate(GenerateError::Eval(error))) => Some(error),
        _ => error.downcast_ref::<EvalError>(),
    };
    if !matches!(evaluation, Some(EvalError::ContextFull { .. })) {
        return error;
    }
    let reset = if can_reset {
        "/reset clears the conversation; "
    } else {
        ""
    };
    let trained = format::plural(model.trained_context(), "token");
    anyhow!("{error}; {reset}--ctx N makes it larger (the model was trained for {trained})")
}

/// The hint to add a device if none of those in use supports an operation.
pub fn missing_device(error: &anyhow::Error) -> Option<&'static str> {
    let unsupported = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(CompileError::Place(PlaceError::Unsupported { refusals, .. })) => Some(refusals),
        _ => None,
    });
    let mut refusals = unsupported?.0.iter();
    refusals
        .all(|refusal| refusal.device.starts_with("gpu"))
        .then_some("`--device gpu0,cpu` runs on the CPU what the GPU does not support")
}

/// A possible cause of damage to a file.
pub fn damaged_file(error: &ModelFileError) -> Option<&'static str> {
    let (ModelFileError::Gguf(error)
    | ModelFileError::Split(SplitError::Shard { source: error, .. })) = error
    else {
        return None;
    };
    match error {
        GgufError::Truncated { .. }
        | GgufError::CountTooLarge { .. }
        | GgufError::OutsideFile { .. } => Some("is the file truncated?"),
        _ => None,
    }
}

/// The command-line error `error`, with a tip if an option stands before its command.
pub fn misplaced_option(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_before_command = std::env::args().nth(1).is_some_and(|first| {
        first.starts_with('-') && option.split('=').next() == first.split('=').next()
    });
    let name = option.trim_start_matches('-');
    let is_known = |arg: &clap::Arg| {
        arg.get_long() == Some(name) || arg.get_short().is_some_and(|c| name == c.to_string())
    };
    let program = Cli::command();
    let mut commands = program.get_subcommands();
    if !is_before_command || !commands.any(|command| command.get_arguments().any(is_known)) {
        return error;
    }
    let tip = format!("options follow the command: kovar COMMAND {option} ...");
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}
