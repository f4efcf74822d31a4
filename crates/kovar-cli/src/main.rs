//! The `kovar` program: text from a model file with one command.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod diagnostics;
mod format;
mod hints;
mod interrupt;
mod load;
mod output;
mod progress;
mod saved_file;
mod stream;
mod text_input;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use commands::Cli;

fn main() -> ExitCode {
    let matches = Cli::command()
        .try_get_matches()
        .unwrap_or_else(|error| hints::misplaced_option(error).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    diagnostics::start_log(cli.verbose);
    match cli.run() {
        Ok(code) => code,
        Err(error) => diagnostics::report(&error, || commands::usage(matches.subcommand_name())),
    }
}
