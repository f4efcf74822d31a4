//! Built-in templates for models whose file has no template.

use crate::Tokenizer;

/// The origin of a [`ChatTemplate`](super::ChatTemplate); `Display` is a description for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateKind {
    /// Given as source, by the model's file or by the caller.
    Source,
    /// `<|im_start|>role`, the text, `<|im_end|>`.
    ChatMl,
    /// `User: ` and `Assistant: ` before each text.
    Plain,
    /// The same for RWKV World models: a blank line ends each text.
    RwkvWorld,
}

impl std::fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "the model's own template",
            Self::ChatMl => "ChatML",
            Self::Plain => "User: / Assistant:",
            Self::RwkvWorld => "User: / Assistant: with blank lines",
        })
    }
}

impl TemplateKind {
    /// The template for a file without one: ChatML if the vocabulary has its tokens, RWKV World's
    /// for its vocabulary, or else plain names.
    pub fn fallback(tokenizer: &Tokenizer) -> Self {
        match tokenizer.id_of("<|im_start|>") {
            Some(_) => Self::ChatMl,
            None if tokenizer.is_world() => Self::RwkvWorld,
            None => Self::Plain,
        }
    }

    /// The Jinja source of a fallback.
    pub(super) fn source(self) -> Option<&'static str> {
        match self {
            Self::Source => None,
            Self::ChatMl => Some(CHATML),
            Self::Plain => Some(PLAIN),
            Self::RwkvWorld => Some(RWKV_WORLD),
        }
    }

    /// Strings that end the assistant's turn, for models that do not end it with a token.
    pub fn stop_strings(self) -> &'static [&'static str] {
        match self {
            Self::Source => &[],
            Self::ChatMl => &["<|im_end|>"],
            Self::Plain => &["\nUser:"],
            Self::RwkvWorld => &["\n\n"],
        }
    }
}

const CHATML: &str = "\
{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
";

const PLAIN: &str = "\
{%- for message in messages -%}
    {%- if message.role == 'user' -%}
        {{- 'User: ' + message.content + '\\n' -}}
    {%- elif message.role == 'assistant' -%}
        {{- 'Assistant: ' + message.content + '\\n' -}}
    {%- else -%}
        {{- message.content + '\\n\\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- 'Assistant:' -}}
{%- endif -%}
";

const RWKV_WORLD: &str = "\
{%- for message in messages -%}
    {%- if message.role == 'user' -%}
        {{- 'User: ' + message.content | trim + '\\n\\n' -}}
    {%- elif message.role == 'assistant' -%}
        {{- 'Assistant: ' + message.content | trim + '\\n\\n' -}}
    {%- else -%}
        {{- 'System: ' + message.content | trim + '\\n\\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- 'Assistant:' -}}
{%- endif -%}
";
