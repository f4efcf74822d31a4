//! Ctrl-C: cancels work that listens for it, and otherwise ends the program. Other signals have
//! their default effect, SIGTERM exit code 143.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;

use crate::diagnostics::INTERRUPTED;

/// Reports whether the user pressed Ctrl-C.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    is_listening: AtomicBool,
    presses: AtomicUsize,
}

impl Interrupt {
    /// Installs the handler of Ctrl-C for the whole program. May be called once. Until
    /// [`listen`](Self::listen) is called, Ctrl-C ends the program with exit code 130.
    pub fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let state = interrupt.0.clone();
        ctrlc::set_handler(move || {
            let presses = state.presses.fetch_add(1, Ordering::SeqCst);
            if !state.is_listening.load(Ordering::SeqCst) || presses > 0 {
                let _ = writeln!(io::stderr(), "\ninterrupted");
                std::process::exit(INTERRUPTED.into());
            }
        })
        .context("cannot handle Ctrl-C")?;
        Ok(interrupt)
    }

    /// Until the guard is dropped, the first Ctrl-C does not end the program but is reported by
    /// [`flow`](Self::flow). A second one still ends it.
    pub fn listen(&self) -> Listening<'_> {
        self.0.presses.store(0, Ordering::SeqCst);
        self.0.is_listening.store(true, Ordering::SeqCst);
        Listening(self)
    }

    /// `Break` if Ctrl-C was pressed since [`listen`](Self::listen) was called.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.0.presses.load(Ordering::SeqCst) > 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// While it lives, the first Ctrl-C does not end the program.
pub struct Listening<'a>(&'a Interrupt);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.0.is_listening.store(false, Ordering::SeqCst);
    }
}
