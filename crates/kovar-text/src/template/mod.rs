//! Chat templates: convert a conversation to the text format that a model was trained on.

mod bounds;
mod date;
mod error;
mod fallback;
mod functions;

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::{Deserialize, Serialize};

use crate::Tokenizer;

pub use error::TemplateError;
pub use fallback::TemplateKind;

/// The engine's fuel for one rendering: one unit per instruction and per 64 bytes of data.
/// [`bounds`] and [`TIME_LIMIT`] bound what the engine does not count.
const FUEL: u64 = 2_000_000;
/// Maximum bytes of the output.
const MAX_OUTPUT: usize = 16 << 20;
/// Maximum bytes of the source.
const MAX_SOURCE: usize = 1 << 20;

/// Maximum time for parsing or rendering; ordinary templates take milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Stack size for the engine, which recurses over expressions and values.
const STACK: usize = 64 << 20;

const NAME: &str = "chat_template";

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The speaker: `system`, `user`, `assistant` or another role that the template knows.
    pub role: String,
    /// The text of the turn.
    pub content: String,
}

impl Message {
    /// A turn of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// Inputs of a template besides the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions<'a> {
    /// Whether the text ends where the assistant's answer begins.
    pub add_generation_prompt: bool,
    /// Text of the token that begins a text, empty if there is none.
    pub bos_token: &'a str,
    /// Text of the token that ends a text, empty if there is none.
    pub eos_token: &'a str,
}

impl<'a> RenderOptions<'a> {
    /// The tokens of `tokenizer`, with a generation prompt.
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        let text = |id: Option<u32>| {
            id.and_then(|id| tokenizer.token_text(id))
                .unwrap_or_default()
        };
        Self {
            add_generation_prompt: true,
            bos_token: text(tokenizer.bos()),
            eos_token: text(tokenizer.eos()),
        }
    }
}

/// A Jinja template in the environment that Hugging Face's `apply_chat_template` gives it:
/// `trim_blocks`, `lstrip_blocks`, loop controls, methods of Python's strings, lists and dicts,
/// `raise_exception`, `strftime_now` (in UTC) and `tojson`.
///
/// Templates come with model files and are not trusted: the instructions, data and output of a
/// rendering are bounded, and it has no access to files or the network.
///
/// Encode the text with [`parse_special`](crate::EncodeOptions::parse_special) and without
/// [`add_special`](crate::EncodeOptions::add_special): the template writes the begin token.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Arc<Environment<'static>>,
    kind: TemplateKind,
}

impl ChatTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], [`TemplateError::SourceTooLong`], [`TemplateError::TooSlow`]
    pub fn from_source(source: &str) -> Result<Self, TemplateError> {
        Self::parse(source, TemplateKind::Source)
    }

    /// The template of the tokenizer's file, or the fallback for its vocabulary; see
    /// [`Self::kind`].
    ///
    /// # Errors
    /// As [`Self::from_source`].
    pub fn for_tokenizer(tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        match tokenizer.chat_template() {
            // Files contain this name instead of a template.
            Some("rwkv-world") => Self::fallback(TemplateKind::RwkvWorld),
            Some(source) => Self::from_source(source),
            None => Self::fallback(TemplateKind::fallback(tokenizer)),
        }
    }

    /// A built-in template. [`TemplateKind::Source`] is not built in and gives an empty template.
    ///
    /// # Errors
    /// None for the built-in templates.
    pub fn fallback(kind: TemplateKind) -> Result<Self, TemplateError> {
        Self::parse(kind.source().unwrap_or_default(), kind)
    }

    fn parse(source: &str, kind: TemplateKind) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE {
            return Err(TemplateError::SourceTooLong {
                len: source.len(),
                limit: MAX_SOURCE,
            });
        }
        let source = source.to_owned();
        let env = on_own_thread(move || environment(&source))?;
        Ok(Self {
            env: Arc::new(env),
            kind,
        })
    }

    /// Makes `strftime_now` return a fixed time instead of the current time.
    pub fn with_time(mut self, time: SystemTime) -> Self {
        functions::set_clock(Arc::make_mut(&mut self.env), move || time);
        self
    }

    /// The origin of the template; its `Display` is a description for users.
    pub fn kind(&self) -> TemplateKind {
        self.kind
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// [`TemplateError::Refused`] if the template rejects the conversation (roles out of order,
    /// say), [`TemplateError::OutOfFuel`], [`TemplateError::OutputTooLong`] and
    /// [`TemplateError::TooSlow`] if it exceeds its bounds, [`TemplateError::Render`] if one of its
    /// expressions fails.
    pub fn render(
        &self,
        messages: &[Message],
        options: RenderOptions<'_>,
    ) -> Result<String, TemplateError> {
        let RenderOptions {
            add_generation_prompt,
            bos_token,
            eos_token,
        } = options;
        let messages: Vec<Value> = messages
            .iter()
            .map(|Message { role, content }| {
                Value::from_pairs([("role", role.as_str()), ("content", content.as_str())])
            })
            .collect();
        // Templates test `tools is not none`: the reference always passes these two.
        let context = context! {
            messages,
            add_generation_prompt,
            bos_token,
            eos_token,
            tools => (),
            documents => (),
        };
        let env = Arc::clone(&self.env);
        on_own_thread(move || render(&env, context))
    }
}

/// The engine with `source` as its template.
fn environment(source: &str) -> Result<Environment<'static>, TemplateError> {
    let mut env = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    env.set_syntax(syntax.build().map_err(TemplateError::syntax)?);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(FUEL));
    functions::add_to(&mut env);
    bounds::add_to(&mut env);
    // First unchanged, so that errors refer to the file's own text.
    for source in [source.to_owned(), bounds::bound_sets(source)] {
        env.add_template_owned(NAME, source)
            .map_err(TemplateError::syntax)?;
    }
    Ok(env)
}

/// Runs `work` on a thread with a large stack, for at most [`TIME_LIMIT`]. A thread that takes
/// longer is detached: the engine cannot be interrupted.
fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TemplateError> + Send + 'static,
) -> Result<T, TemplateError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("chat template".to_owned())
        .stack_size(STACK)
        // A late result has no receiver.
        .spawn(move || drop(sender.send(work())))
        .map_err(TemplateError::Thread)?;
    match receiver.recv_timeout(TIME_LIMIT) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(TemplateError::TooSlow { limit: TIME_LIMIT }),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(TemplateError::Engine),
    }
}

fn render(env: &Environment<'static>, context: Value) -> Result<String, TemplateError> {
    let template = env.get_template(NAME).map_err(TemplateError::syntax)?;
    let mut output = Output::default();
    match template.render_captured_to(context, &mut output) {
        _ if output.is_full => Err(TemplateError::OutputTooLong { limit: MAX_OUTPUT }),
        Err(error) => Err(TemplateError::render(error)),
        Ok(_) => Ok(String::from_utf8_lossy(&output.bytes).into_owned()),
    }
}

/// Accepts up to [`MAX_OUTPUT`] bytes.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_OUTPUT - self.bytes.len() {
            self.is_full = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
