//! Tokenizers, chat templates, samplers and language models of kovar.
