/// Why a chat template could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is longer than any honest template.
    #[error("the chat template has {len} bytes, more than the {limit} that are allowed")]
    SourceTooLong {
        /// Length in bytes.
        len: usize,
        /// The longest that is allowed.
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
    /// The template refused the conversation by `raise_exception`.
    #[error("the chat template refuses this conversation: {message}")]
    Refused {
        /// The template's own words.
        message: String,
    },
    /// The template worked for longer than any honest template.
    #[error("the chat template was stopped after {fuel} steps")]
    OutOfFuel {
        /// Steps that a rendering may take.
        fuel: u64,
    },
    /// The text is longer than is allowed.
    #[error("the chat template writes more than {limit} bytes")]
    OutputTooLong {
        /// Bytes that a rendering may write.
        limit: usize,
    },
    /// The template took longer than any honest template.
    #[error("the chat template was given up after {} seconds", limit.as_secs())]
    TooSlow {
        /// The longest that is waited.
        limit: std::time::Duration,
    },
    /// No thread for the template could be started.
    #[error("no thread for the chat template could be started")]
    Thread(#[source] std::io::Error),
    /// The template engine broke off.
    #[error("the template engine broke off")]
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
