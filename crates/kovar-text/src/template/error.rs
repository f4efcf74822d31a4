/// Why a chat template could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is longer than allowed.
    #[error("the chat template has {len} bytes; at most {limit} are allowed")]
    SourceTooLong {
        /// Length in bytes.
        len: usize,
        /// The maximum length.
        limit: usize,
    },
    /// The source is not a Jinja template.
    #[error("the chat template does not parse (line {line})")]
    Syntax {
        /// Line of the source, from 1; 0 if it is not known.
        line: usize,
        /// What the template engine reported.
        #[source]
        source: minijinja::Error,
    },
    /// The template rejected the conversation with `raise_exception`.
    #[error("the chat template rejects this conversation: {message}")]
    Refused {
        /// The template's message.
        message: String,
    },
    /// The rendering ran out of fuel.
    #[error("the chat template was stopped after {fuel} instructions")]
    OutOfFuel {
        /// The fuel of a rendering.
        fuel: u64,
    },
    /// The output is longer than allowed.
    #[error("the chat template writes more than {limit} bytes")]
    OutputTooLong {
        /// The maximum length in bytes.
        limit: usize,
    },
    /// Parsing or rendering took too long.
    #[error("the chat template was stopped after {} seconds", limit.as_secs())]
    TooSlow {
        /// The time limit.
        limit: std::time::Duration,
    },
    /// No thread for the template could be started.
    #[error("no thread for the chat template could be started")]
    Thread(#[source] std::io::Error),
    /// The template engine failed internally.
    #[error("the template engine failed internally")]
    Engine,
    /// An expression of the template failed.
    #[error("the chat template failed (line {line})")]
    Render {
        /// Line of the source, from 1; 0 if it is not known.
        line: usize,
        /// What the template engine reported.
        #[source]
        source: minijinja::Error,
    },
}

/// Carries the message of `raise_exception` through the template engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub String);

impl TemplateError {
    pub(super) fn syntax(source: minijinja::Error) -> Self {
        Self::Syntax {
            line: source.line().unwrap_or(0),
            source,
        }
    }

    pub(super) fn render(source: minijinja::Error) -> Self {
        if source.kind() == minijinja::ErrorKind::OutOfFuel {
            return Self::OutOfFuel { fuel: super::FUEL };
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&source);
        while let Some(error) = cause {
            if let Some(Raised(message)) = error.downcast_ref() {
                return Self::Refused {
                    message: message.clone(),
                };
            }
            if let Some(inner) = error.downcast_ref::<minijinja::Error>()
                && inner.kind() == minijinja::ErrorKind::OutOfFuel
            {
                return Self::OutOfFuel { fuel: super::FUEL };
            }
            cause = error.source();
        }
        Self::Render {
            line: source.line().unwrap_or(0),
            source,
        }
    }
}
