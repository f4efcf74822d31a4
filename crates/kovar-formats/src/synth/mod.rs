//! Model files of real shapes with random weights, for measuring speed without the real weights.
//!
//! Weights are approximately Gaussian around 0 with a standard deviation of `1 / sqrt(row)`, less in
//! the projections that are added to the hidden state, so that activations stay finite. Norms are 1.
//! Encoding every element would take most of the time, so each kind of matrix has a pool of encoded
//! pieces of rows, and its rows are put together from randomly chosen pieces: the numbers repeat,
//! which no kernel's speed depends on. One seed gives the same bytes everywhere.
//!
//! The vocabularies mean nothing; they are there because llama.cpp loads no file without one.

mod decoder;
mod random;
mod rwkv7;
mod shape;
mod vocabulary;
mod write;

pub use shape::Shape;
pub use write::{SynthError, write_file};
