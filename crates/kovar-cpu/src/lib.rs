//! The CPU backend of kovar.
