//! Model files of real shapes with random weights, to measure speed without the real weights.
//!
//! Weights are approximately Gaussian around 0 with a standard deviation of `1 / sqrt(columns)`.
//! The projections that are added to the hidden state have a smaller one, so that activations stay
//! finite. Norms are 1. Encoding every element would take most of the time, so each kind of matrix
//! has a pool of encoded pieces of rows, and its rows are joined from random pieces. The numbers
//! repeat, which does not change the speed of any kernel. The same seed gives the same bytes on
//! every machine.
//!
//! The vocabularies have no meaning. llama.cpp does not load a file without a vocabulary.

mod decoder;
mod random;
mod rwkv7;
mod shape;
mod vocabulary;
mod write;

pub use shape::Shape;
pub use write::{SynthError, write_file};
