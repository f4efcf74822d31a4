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

/// Run AI models on your own machine.
///
/// kovar reads GGUF files, like llama.cpp, and Hugging Face folders, and runs the models on the
/// CPU, or on GPUs and the CPU together (--device). A small story model is embedded in the program,
/// so it also works without a model file.
#[derive(Parser, Debug)]
#[command(name = "kovar", bin_name = "kovar", version, propagate_version = true)]
#[command(max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Log more to stderr: -v, -vv, -vvv. The environment variable KOVAR_LOG sets the level by
    /// module.
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 900)]
    pub verbose: u8,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  kovar generate                                  a story from the embedded model
  kovar generate -m model.gguf \"The capital of France is\" -n 20 --temp 0
  kovar chat -m model.gguf                        a conversation; Ctrl-D ends it
  kovar chat -m model.gguf \"What is a tensor?\"    one answer
  kovar inspect model.gguf                        what is in the file
  kovar quantize model.gguf small.gguf --type Q4_K_M
  kovar bench -m model.gguf                       how fast it runs here
  kovar plan -m model.gguf                        the memory that it needs

`kovar COMMAND --help` shows details and examples.
Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted by Ctrl-C.";

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

/// The usage line of a command, as in its help.
pub fn usage(command: Option<&str>) -> String {
    let mut program = Cli::command();
    program.build();
    let command = command.and_then(|name| program.find_subcommand_mut(name));
    command.map_or(String::new(), |command| command.render_usage().to_string())
}

impl Cli {
    /// Runs the subcommand and returns the exit code of the program.
    ///
    /// # Errors
    /// The error of the subcommand.
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
