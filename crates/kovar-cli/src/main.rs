//! The `kovar` program: text from a model file with one command.

mod args;
mod commands;
mod diagnostics;
mod format;
mod interrupt;
mod load;
mod output;
mod progress;
mod stdin;
mod stream;

use std::process::ExitCode;

use clap::Parser;

use commands::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    diagnostics::start_log(cli.verbose);
    match cli.run() {
        Ok(code) => code,
        Err(error) => diagnostics::report(&error),
    }
}
