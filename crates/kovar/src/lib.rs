//! A tensor runtime for running AI models on one's own machine.
