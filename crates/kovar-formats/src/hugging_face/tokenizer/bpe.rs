//! Byte-level BPE: GGUF's tokenizer `gpt2`.

use super::super::HuggingFaceError;
use super::super::json::shown;
use super::pre_tokenizer::family;
use super::{Source, kind};
use crate::gguf::{StringArray, Value};

pub(super) fn metadata(
    source: &Source<'_>,
) -> Result<Vec<(&'static str, Value)>, HuggingFaceError> {
    check_model(source)?;
    // Qwen's tokenizers have NFC. GGUF has no key for it, and llama.cpp does not apply it.
    match kind(&source.json.normalizer) {
        None if source.json.normalizer.is_null() => {}
        Some("NFC") => {}
        _ => return Err(source.unsupported("normalizer", shown(Some(&source.json.normalizer)))),
    }
    let Some(family) = family(&source.json.pre_tokenizer) else {
        let value = shown(Some(&source.json.pre_tokenizer));
        return Err(source.unsupported("pre_tokenizer", value));
    };
    if source.json.model.ignore_merges != family.ignore_merges {
        let value = source.json.model.ignore_merges;
        return Err(source.unsupported("model.ignore_merges", value));
    }
    let mut merges = Vec::with_capacity(source.json.model.merges.len());
    for (rank, merge) in source.json.model.merges.iter().enumerate() {
        // GGUF separates the two tokens by a space, so neither may contain one.
        let pair = merge
            .pair()
            .filter(|(left, right)| !left.contains(' ') && !right.contains(' '));
        let (left, right) = pair.ok_or_else(|| HuggingFaceError::BadMerge {
            path: source.path.to_owned(),
            rank,
        })?;
        merges.push(format!("{left} {right}"));
    }
    let merges: StringArray = merges.iter().collect();
    Ok(vec![
        ("model", "gpt2".into()),
        ("pre", family.name.into()),
        ("merges", merges.into()),
    ])
}

/// Fails if the model has features that neither kind of BPE in GGUF has.
pub(super) fn check_model(source: &Source<'_>) -> Result<(), HuggingFaceError> {
    let model = &source.json.model;
    if let Some(dropout) = model.dropout.filter(|&dropout| dropout != 0.0) {
        return Err(source.unsupported("model.dropout", dropout));
    }
    for (key, affix) in [
        (
            "continuing_subword_prefix",
            &model.continuing_subword_prefix,
        ),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ] {
        if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
            return Err(source.unsupported(&format!("model.{key}"), format!("{affix:?}")));
        }
    }
    Ok(())
}
