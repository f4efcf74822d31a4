use super::vocab::{TokenType, Vocab};

/// The control tokens that end a turn in common model families. A file often declares only one of
/// the end tokens that its model uses.
const END_TEXTS: &[&str] = &[
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "</s>",
    "<\u{FF5C}end\u{2581}of\u{2581}sentence\u{FF5C}>",
];

/// The control tokens that end a turn of a conversation, in order of preference.
const TURN_END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "[EOT]",
];

fn control_token(vocab: &Vocab, text: &str) -> Option<u32> {
    vocab
        .id_of(text)
        .filter(|&id| vocab.token_type(id) == Some(TokenType::Control))
}

/// The ids that end a text: those named in the file and the usual ones, sorted.
pub(crate) fn end_ids(vocab: &Vocab, named: &[Option<u32>], more: &[u32]) -> Vec<u32> {
    let usual = END_TEXTS
        .iter()
        .filter_map(|text| control_token(vocab, text));
    let mut ids: Vec<u32> = named
        .iter()
        .copied()
        .flatten()
        .chain(usual)
        .chain(more.iter().copied())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The token that ends a turn, if the file does not name it.
pub(crate) fn guess_turn_end(vocab: &Vocab) -> Option<u32> {
    TURN_END_TEXTS
        .iter()
        .find_map(|text| control_token(vocab, text))
}
