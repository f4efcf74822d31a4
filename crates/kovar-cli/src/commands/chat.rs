use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kovar::{
    FinishReason, GenerateOptions, Generation, LanguageModel, Message, SamplerParams, TemplateKind,
};
use serde::Serialize;

use crate::args::{GenerationArgs, ModelSource, RunArgs};
use crate::diagnostics::{INTERRUPTED, note, with_causes};
use crate::interrupt::Interrupt;
use crate::saved_file::SavedFile;
use crate::stream::{Timings, finish_name, reported_seed, statistics, stream, warn_cut};
use crate::{format, hints, load, output, text_input};

/// Chat with a model.
///
/// Formats the messages with the chat template of the model's file. Without MESSAGE, starts a
/// conversation in which each line is a message. /reset clears the conversation, /help lists the
/// commands, /exit or Ctrl-D ends the program, Ctrl-C stops an answer. Lines may also come from a
/// pipe: the exit code is then 1 if a message failed or could not be saved, and --json prints one
/// object per message, with the error if it failed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Chat {
    /// Answer this message and exit; `-` reads it from stdin.
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,

    /// Instructions at the beginning of the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,

    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    generation: GenerationArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar chat -m model.gguf
  kovar chat -m model.gguf --system \"Answer in one sentence.\" --temp 0.3
  kovar chat -m model.gguf \"What is the capital of France?\"
  kovar chat -m model.gguf --saved talk.kovar
  git diff | kovar chat -m model.gguf --system \"Describe this change.\" -";

const COMMANDS: &str =
    "/reset clears the conversation, /help shows this line, /exit, /quit or Ctrl-D ends the chat";

/// The default of --max-tokens for an answer: a small model may never end an answer.
const MAX_TOKENS: i64 = 1024;

#[derive(Serialize)]
struct Report<'a> {
    model: String,
    message: &'a str,
    text: &'a str,
    tokens: &'a [u32],
    finish_reason: &'static str,
    seed: Option<u64>,
    timings: Timings,
}

#[derive(Serialize)]
struct Failure<'a> {
    model: String,
    message: &'a str,
    error: String,
}

impl Chat {
    /// Runs the command.
    ///
    /// # Errors
    /// Values out of range, a model that cannot be loaded, a message that does not fit.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut options = self.generation.options(MAX_TOKENS)?;
        let mut sampling = self.generation.sampling.params()?;
        let interrupt = Interrupt::install()?;
        // Before anything that takes long.
        let saved_file = SavedFile::new(self.generation.saved.as_deref())?;
        let file = load::open(&self.run.model.model)?;
        let message = match self.message.as_deref() {
            None => None,
            given => text_input::text_or_stdin(given)?,
        };
        if message
            .as_deref()
            .is_some_and(|text| text.trim().is_empty())
        {
            bail!("the message is empty");
        }
        let mut model = load::language_model(file, &self.run, self.generation.quiet)?;
        self.generation
            .sampling
            .add_tokens(&mut sampling, &model.tokenizer)?;
        if !self.generation.quiet {
            load::note_endless(&model.model, &self.run);
        }
        let kind = model.template()?.kind();
        options
            .stop
            .extend(kind.stop_strings().iter().map(|&stop| stop.to_owned()));
        self.note_template(kind);
        let messages = saved_file.restore_messages(&mut model)?;
        let mut conversation = Conversation {
            chat: &self,
            interrupt,
            model,
            options,
            sampling,
            saved_file,
            messages: messages.unwrap_or_default(),
        };
        conversation.instruct();
        match message {
            Some(message) => {
                let answer = conversation.answer(text_input::without_newline(&message))?;
                answer.saved?;
                Ok(match answer.finish {
                    FinishReason::Cancelled => ExitCode::from(INTERRUPTED),
                    _ => ExitCode::SUCCESS,
                })
            }
            None => conversation.converse(),
        }
    }

    fn note_template(&self, kind: TemplateKind) {
        if self.generation.quiet {
            return;
        }
        if kind != TemplateKind::Source {
            note(format_args!(
                "note: the file has no chat template; using {kind}"
            ));
        }
        if let ModelSource::Demo(demo) = self.run.model.model {
            note(format_args!(
                "note: {demo} can only tell stories; choose a chat model with -m"
            ));
        }
    }
}

/// The result of an answered message.
struct Answer {
    finish: FinishReason,
    /// Whether the conversation was saved with the answer.
    saved: anyhow::Result<()>,
}

struct Conversation<'a> {
    chat: &'a Chat,
    interrupt: Interrupt,
    model: LanguageModel,
    options: GenerateOptions,
    sampling: SamplerParams,
    saved_file: SavedFile,
    messages: Vec<Message>,
}

impl Conversation<'_> {
    fn reset(&mut self) {
        self.messages.clear();
        self.instruct();
    }

    /// Puts the instructions of --system, if given, at the beginning of the conversation.
    fn instruct(&mut self) {
        if let Some(text) = &self.chat.system {
            let first = self.messages.first();
            let has_system = first.is_some_and(|message| message.role == "system");
            let replaced = 0..usize::from(has_system);
            let system = Message::new("system", text);
            self.messages.splice(replaced, [system]);
        }
    }

    /// Reads messages line by line until the end of stdin.
    fn converse(&mut self) -> anyhow::Result<ExitCode> {
        let is_terminal = io::stdin().is_terminal();
        if is_terminal && !self.chat.generation.quiet {
            note(COMMANDS);
        }
        let mut line = Vec::new();
        let (mut at, mut failed) = (0, false);
        loop {
            if is_terminal {
                let mut err = io::stderr();
                let _ = write!(err, "> ").and_then(|()| err.flush());
            }
            line.clear();
            let mut stdin = io::stdin().lock().take(text_input::MAX_PROMPT + 1);
            let read = stdin.read_until(b'\n', &mut line);
            let read = read.context("cannot read stdin")?;
            if read as u64 > text_input::MAX_PROMPT {
                let max = format::bytes(text_input::MAX_PROMPT);
                bail!("a message on stdin is longer than {max}");
            }
            if read == 0 {
                if is_terminal {
                    note("");
                }
                break;
            }
            match std::str::from_utf8(&line).map(str::trim) {
                Ok("") => {}
                Ok("/exit" | "/quit") => break,
                Ok("/help") => note(COMMANDS),
                Ok("/reset") => {
                    self.reset();
                    if !self.chat.generation.quiet {
                        note("the conversation is cleared");
                    }
                }
                Ok(command) if command.starts_with('/') => {
                    note(format_args!("unknown command {command}: {COMMANDS}"));
                }
                Ok(message) => failed |= !self.turn(message)?,
                Err(error) => {
                    let message = String::from_utf8_lossy(&line);
                    let error = text_input::not_utf8(at + error.valid_up_to());
                    self.fail(message.trim(), &error)?;
                    failed = true;
                }
            }
            at += read;
        }
        Ok(if failed && !is_terminal {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Answers a message of a conversation; `false` if that fails. Most errors, such as a full
    /// context, do not end the conversation.
    fn turn(&mut self, message: &str) -> anyhow::Result<bool> {
        match self.answer(message) {
            Ok(Answer { saved: Ok(()), .. }) => Ok(true),
            // The message was answered, so this is not its failure.
            Ok(Answer {
                saved: Err(error), ..
            }) => {
                note(format_args!("error: {}", with_causes(&error)));
                Ok(false)
            }
            Err(error) if error.is::<io::Error>() => Err(error),
            Err(error) => {
                self.fail(message, &error)?;
                Ok(false)
            }
        }
    }

    /// Reports that a message of a conversation could not be answered.
    fn fail(&self, message: &str, error: &anyhow::Error) -> anyhow::Result<()> {
        let error = with_causes(error);
        note(format_args!("error: {error}"));
        if self.chat.generation.json {
            output::write_json(&Failure {
                model: self.chat.run.model.model.to_string(),
                message,
                error,
            })?;
        }
        Ok(())
    }

    /// Answers `message` and adds both to the conversation; after an error, neither is added.
    fn answer(&mut self, message: &str) -> anyhow::Result<Answer> {
        let args = &self.chat.generation;
        if !args.quiet {
            load::warn_lost_bytes(&self.model.tokenizer, message);
        }
        self.messages.push(Message::new("user", message));
        let (model, messages) = (&mut self.model, &self.messages);
        let result = stream(&self.interrupt, (!args.json).then_some(""), |on_progress| {
            model.answer(messages, &self.sampling, &self.options, on_progress)
        });
        let generation = match result {
            Ok(generation) => generation,
            Err(error) => {
                self.messages.pop();
                let can_reset = self.messages.iter().any(|message| message.role == "user");
                return Err(hints::context_full(error, &self.model.model, can_reset));
            }
        };
        if args.json {
            self.report(message, &generation)?;
        } else if !args.quiet {
            note(statistics(&generation, &self.sampling));
        }
        warn_cut(&generation, &self.options);
        self.messages
            .push(Message::new("assistant", generation.text));
        Ok(Answer {
            finish: generation.finish,
            saved: self
                .saved_file
                .save_messages(&mut self.model, &self.messages),
        })
    }

    fn report(&self, message: &str, generation: &Generation) -> anyhow::Result<()> {
        output::write_json(&Report {
            model: self.chat.run.model.model.to_string(),
            message,
            text: &generation.text,
            tokens: &generation.tokens,
            finish_reason: finish_name(&generation.finish),
            seed: reported_seed(&self.sampling),
            timings: Timings::of(generation),
        })
    }
}
