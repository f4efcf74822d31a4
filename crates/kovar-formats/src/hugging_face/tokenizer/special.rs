//! Special tokens and chat templates.

use std::path::Path;

use serde_json::Value as Json;

use super::super::json::{Config, shown};
use super::super::{CHAT_TEMPLATE, GENERATION_CONFIG, HuggingFaceError, TOKENIZER_CONFIG};
use super::{Metadata, Source, Tokens, kind};
use crate::gguf::Value;
use crate::small_file::{optional, read_text};

/// The most bytes of a template.
const MAX_TEMPLATE_BYTES: usize = 16 << 20;

/// The key of a special token in `tokenizer_config.json`, that of its id in `config.json`, and that
/// of its id in GGUF.
const SPECIAL: &[(&str, Option<&str>, &str)] = &[
    ("bos_token", Some("bos_token_id"), "bos_token_id"),
    ("eos_token", Some("eos_token_id"), "eos_token_id"),
    ("unk_token", None, "unknown_token_id"),
    ("pad_token", Some("pad_token_id"), "padding_token_id"),
];

pub(super) fn metadata(
    folder: &Path,
    model: &Config,
    source: &Source<'_>,
    tokens: &Tokens,
) -> Result<Metadata, HuggingFaceError> {
    let settings = Config::read_or_empty(folder.join(TOKENIZER_CONFIG))?;
    let generation = Config::read_or_empty(folder.join(GENERATION_CONFIG))?;
    let mut metadata: Vec<(&str, Value)> = Vec::new();
    for &(key, id_key, name) in SPECIAL {
        let by_text = text_of(&settings, key)?.and_then(|text| tokens.id_of(text));
        let id = match (by_text, id_key) {
            (Some(id), _) => Some(id),
            (None, Some(id_key)) => ids_of(model, id_key, tokens)?.first().copied(),
            (None, None) => None,
        };
        if let Some(id) = id {
            metadata.push((name, id.into()));
        }
    }
    let mut ends = ids_of(&generation, "eos_token_id", tokens)?;
    ends.extend(ids_of(model, "eos_token_id", tokens)?);
    ends.sort_unstable();
    ends.dedup();
    if ends.len() > 1 {
        metadata.push(("eos_token_ids", ends.into()));
    }
    let around = added_around(source)?;
    for (added, key, id_name, name) in [
        (around.0, "add_bos_token", "bos_token_id", "add_bos_token"),
        (around.1, "add_eos_token", "eos_token_id", "add_eos_token"),
    ] {
        let is_added = settings.bool(key)?.unwrap_or(added.is_some());
        metadata.push((name, is_added.into()));
        let Some(text) = added else { continue };
        let known = metadata.iter().find(|(name, _)| *name == id_name);
        match (tokens.id_of(text), known) {
            (Some(id), Some((_, known))) if *known == id.into() => {}
            (Some(id), None) => metadata.push((id_name, id.into())),
            _ => return Err(source.unsupported("post_processor", format!("{text:?}"))),
        }
    }
    let metadata = metadata.into_iter();
    let mut metadata: Metadata = metadata
        .map(|(key, value)| (format!("tokenizer.ggml.{key}"), value))
        .collect();
    metadata.extend(template(folder, &settings)?);
    Ok(metadata)
}

/// The text of a special token: the value is this text or an object with this text and properties.
fn text_of<'a>(settings: &'a Config, key: &str) -> Result<Option<&'a str>, HuggingFaceError> {
    match settings.get(key) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(Json::Object(token)) => match token.get("content").and_then(Json::as_str) {
            Some(text) => Ok(Some(text)),
            None => Err(settings.wrong(key, "a text, or an object with `content`")),
        },
        Some(_) => Err(settings.wrong(key, "a text, or an object with `content`")),
    }
}

/// The ids under `key`: the value is one id or a list.
fn ids_of(config: &Config, key: &str, tokens: &Tokens) -> Result<Vec<u32>, HuggingFaceError> {
    let values = match config.get(key) {
        None => return Ok(Vec::new()),
        Some(Json::Array(values)) => values.as_slice(),
        Some(value) => std::slice::from_ref(value),
    };
    let id = |value: &Json| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.filter(|&id| (id as usize) < tokens.texts.len())
    };
    let ids: Option<Vec<u32>> = values.iter().map(id).collect();
    ids.ok_or_else(|| config.wrong(key, "ids of the vocabulary"))
}

/// The tokens that the post-processor adds before and after a text.
fn added_around<'a>(
    source: &'a Source<'_>,
) -> Result<(Option<&'a str>, Option<&'a str>), HuggingFaceError> {
    let processor = &source.json.post_processor;
    let unsupported = || source.unsupported("post_processor", shown(Some(processor)));
    let stages = match kind(processor) {
        None if processor.is_null() => return Ok((None, None)),
        Some("Sequence") => {
            let stages = processor.get("processors").and_then(Json::as_array);
            stages.ok_or_else(unsupported)?
        }
        _ => std::slice::from_ref(processor),
    };
    let mut around = (None, None);
    for stage in stages {
        match kind(stage) {
            Some("ByteLevel") => {}
            Some("TemplateProcessing") => {
                let pieces = stage.get("single").and_then(Json::as_array);
                let pieces: Vec<Option<&str>> = pieces
                    .ok_or_else(unsupported)?
                    .iter()
                    .map(|piece| piece.get("SpecialToken")?.get("id")?.as_str())
                    .collect();
                around = match *pieces.as_slice() {
                    [None] => (None, None),
                    [Some(before), None] => (Some(before), None),
                    [None, Some(after)] => (None, Some(after)),
                    [Some(before), None, Some(after)] => (Some(before), Some(after)),
                    _ => return Err(unsupported()),
                };
            }
            _ => return Err(unsupported()),
        }
    }
    Ok(around)
}

/// The chat template in `chat_template.jinja` or, without this file, in the settings, which may
/// have several by name.
fn template(folder: &Path, settings: &Config) -> Result<Metadata, HuggingFaceError> {
    const KEY: &str = "tokenizer.chat_template";
    let text = read_text(&folder.join(CHAT_TEMPLATE), MAX_TEMPLATE_BYTES);
    if let Some(text) = optional(text)? {
        return Ok(vec![(KEY.to_owned(), text.into())]);
    }
    let wrong = || {
        settings.wrong(
            "chat_template",
            "a text, or a list of `name` and `template`",
        )
    };
    let templates = match settings.get("chat_template") {
        None => return Ok(Vec::new()),
        Some(Json::String(text)) => return Ok(vec![(KEY.to_owned(), text.as_str().into())]),
        Some(Json::Array(templates)) => templates,
        Some(_) => return Err(wrong()),
    };
    let mut metadata = Vec::new();
    for template in templates {
        let text = |key: &str| template.get(key).and_then(Json::as_str);
        let (name, source) = text("name").zip(text("template")).ok_or_else(wrong)?;
        let key = match name {
            "default" => KEY.to_owned(),
            other => format!("{KEY}.{other}"),
        };
        metadata.push((key, source.into()));
    }
    Ok(metadata)
}
