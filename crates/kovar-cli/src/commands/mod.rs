//! The command line and its subcommands, one file each.

mod bench;
mod chat;
mod devices;
mod diff;
mod explain;
mod generate;
mod inspect;
mod logits;
mod perplexity;
mod plan;
mod quantize;
mod synth;
mod test_ops;
mod tokenize;

use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, Parser, Subcommand};

/// Runs AI models on your own machine.
///
/// kovar reads GGUF model files, the ones that llama.cpp reads, and Hugging Face folders, and runs
/// them on the CPU, or on GPUs and the CPU together (--device). A small story model is part of the
/// program, so that it has something to say without any file.
#[derive(Parser, Debug)]
#[command(name = "kovar", bin_name = "kovar", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Log more to stderr: -v, -vv, -vvv. The variable KOVAR_LOG says it in detail, by module.
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 900)]
    pub verbose: u8,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  kovar generate                                  a story by the embedded model
  kovar generate -m model.gguf \"The capital of France is\" -n 20 --temp 0
  kovar chat -m model.gguf                        a conversation; Ctrl-D leaves it
  kovar chat -m model.gguf \"What is a tensor?\"    one answer
  kovar inspect model.gguf                        what is in the file
  kovar quantize model.gguf small.gguf --type Q4_K_M
  kovar bench -m model.gguf                       how fast it runs here
  kovar plan -m model.gguf                        what it asks of the devices

`kovar COMMAND --help` tells more and has examples of its own.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C.";

#[derive(Subcommand, Debug)]
enum Command {
    Generate(generate::Generate),
    Chat(chat::Chat),
    Tokenize(tokenize::Tokenize),
    Logits(logits::Logits),
    Perplexity(perplexity::Perplexity),
    Inspect(inspect::Inspect),
    Quantize(quantize::Quantize),
    Synth(synth::Synth),
    Bench(bench::Bench),
    Plan(plan::Plan),
    Explain(explain::Explain),
    Diff(diff::Diff),
    Devices(devices::Devices),
    TestOps(test_ops::TestOps),
}

/// How a command is called, in the words of its help.
pub fn usage(command: Option<&str>) -> String {
    let mut program = Cli::command();
    program.build();
    let command = command.and_then(|name| program.find_subcommand_mut(name));
    command.map_or(String::new(), |command| command.render_usage().to_string())
}

impl Cli {
    /// Runs the subcommand and gives the exit code of the program.
    ///
    /// # Errors
    /// What the subcommand could not do.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Generate(command) => command.run(),
            Command::Chat(command) => command.run(),
            Command::Tokenize(command) => command.run(),
            Command::Logits(command) => command.run(),
            Command::Perplexity(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Quantize(command) => command.run(),
            Command::Synth(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Plan(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Diff(command) => command.run(),
            Command::Devices(command) => command.run(),
            Command::TestOps(command) => command.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_the_command_and_its_arguments() {
        assert_eq!(
            usage(Some("tokenize")),
            "Usage: kovar tokenize [OPTIONS] [TEXT]"
        );
        assert_eq!(usage(None), "");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
