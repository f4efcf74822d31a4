//! Ctrl-C: stops what listens for it, and ends the program otherwise. Other signals end it as the
//! system does, SIGTERM with exit code 143.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;

use crate::diagnostics::INTERRUPTED;

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    is_heard: AtomicBool,
    presses: AtomicUsize,
}

impl Interrupt {
    /// Takes over Ctrl-C for the whole program, which may be done once. Until somebody
    /// [listens](Self::listen), Ctrl-C ends the program with exit code 130.
    pub fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let state = interrupt.0.clone();
        ctrlc::set_handler(move || {
            let presses = state.presses.fetch_add(1, Ordering::SeqCst);
            if !state.is_heard.load(Ordering::SeqCst) || presses > 0 {
                let _ = writeln!(io::stderr(), "\ninterrupted");
                std::process::exit(INTERRUPTED.into());
            }
        })
        .context("cannot handle Ctrl-C")?;
        Ok(interrupt)
    }

    /// Makes the first Ctrl-C known by [`is_requested`](Self::is_requested) instead of ending the
    /// program, until the guard goes. A second one still ends it.
    pub fn listen(&self) -> Listening<'_> {
        self.0.presses.store(0, Ordering::SeqCst);
        self.0.is_heard.store(true, Ordering::SeqCst);
        Listening(self)
    }

    /// Whether Ctrl-C was pressed since somebody began to listen.
    pub fn is_requested(&self) -> bool {
        self.0.presses.load(Ordering::SeqCst) > 0
    }
}

/// While it lives, the first Ctrl-C does not end the program.
pub struct Listening<'a>(&'a Interrupt);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.0.is_heard.store(false, Ordering::SeqCst);
    }
}
