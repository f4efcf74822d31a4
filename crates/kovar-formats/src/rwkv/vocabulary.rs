//! The vocabulary of the RWKV World models: a text file of lines `index 'literal' length`. The
//! literal is a string or a byte string in Python's syntax, and the length is that of its bytes.

use std::path::Path;

use super::RwkvError;
use crate::gguf::{StringArray, Value};
use crate::small_file::{optional, read_text};

/// The name of the file.
pub(super) const FILE: &str = "rwkv_vocab_v20230424.txt";
/// The most bytes of the file. The file of the World models has 1.1 MB.
const MAX_BYTES: usize = 64 << 20;

/// The token that ends texts. It has index 0 and is not in the file.
const END: &str = "<s>";
/// The token that ends a turn of a conversation.
const TURN_END: &[u8] = b"\n\n";
/// The name of the chat template of these models, which programs know.
const TEMPLATE: &str = "rwkv-world";

/// Values of `tokenizer.ggml.token_type`.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const UNUSED: i32 = 5;

/// The keys `tokenizer.*` of the vocabulary at `path`, for a model of `n_tokens` tokens; `None` if
/// the file does not exist.
pub(super) fn metadata(
    path: &Path,
    n_tokens: usize,
) -> Result<Option<Vec<(String, Value)>>, RwkvError> {
    let Some(text) = optional(read_text(path, MAX_BYTES))? else {
        return Ok(None);
    };
    let mut texts: Vec<String> = (0..n_tokens).map(|id| format!("[PAD{id}]")).collect();
    let mut types = vec![UNUSED; n_tokens];
    let mut turn_end = None;
    let mut set =
        |id: usize, text: String, token_type: i32| match (texts.get_mut(id), types.get_mut(id)) {
            (Some(place), Some(kind)) if *kind == UNUSED => {
                (*place, *kind) = (text, token_type);
                Ok(true)
            }
            (Some(_), _) => Ok(false),
            _ => Err(RwkvError::TooManyTokens {
                path: path.to_owned(),
                index: id,
                tokens: n_tokens,
            }),
        };
    set(0, END.to_owned(), CONTROL)?;
    for (at, line) in text.split_terminator('\n').enumerate() {
        let wrong = |what| RwkvError::Line {
            path: path.to_owned(),
            line: at + 1,
            what,
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (id, token) = entry(line).map_err(wrong)?;
        if !set(id, escaped(&token), NORMAL)? {
            return Err(wrong("its index occurs twice"));
        }
        if token == TURN_END {
            turn_end = u32::try_from(id).ok();
        }
    }
    let texts: StringArray = texts.iter().map(String::as_str).collect();
    let mut metadata: Vec<(&str, Value)> = vec![
        ("ggml.model", "rwkv".into()),
        ("ggml.tokens", texts.into()),
        ("ggml.token_type", types.into()),
        ("ggml.bos_token_id", 0u32.into()),
        ("ggml.eos_token_id", 0u32.into()),
        ("ggml.add_bos_token", false.into()),
        ("chat_template", TEMPLATE.into()),
    ];
    if let Some(id) = turn_end {
        metadata.push(("ggml.eot_token_id", id.into()));
    }
    let key = |(name, value)| (format!("tokenizer.{name}"), value);
    Ok(Some(metadata.into_iter().map(key).collect()))
}

/// The index and the bytes of a line.
fn entry(line: &str) -> Result<(usize, Vec<u8>), &'static str> {
    let form = "it is not of the form: index 'literal' length";
    let (index, rest) = line.split_once(' ').ok_or(form)?;
    let (text, length) = rest.rsplit_once(' ').ok_or(form)?;
    let index: usize = index.parse().map_err(|_| "its index is not a number")?;
    let length: usize = length.parse().map_err(|_| "its length is not a number")?;
    let bytes = literal(text)?;
    if bytes.is_empty() {
        return Err("its literal is empty");
    }
    if bytes.len() != length {
        return Err("its literal has a different length");
    }
    Ok((index, bytes))
}

/// The bytes of a string or byte string as Python's `repr` writes it.
fn literal(text: &str) -> Result<Vec<u8>, &'static str> {
    let (text, is_bytes) = match text.strip_prefix('b') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let quote = text
        .chars()
        .next()
        .filter(|quote| ['\'', '"'].contains(quote));
    let quote = quote.ok_or("its literal has no quotes")?;
    let inner = text
        .strip_prefix(quote)
        .and_then(|text| text.strip_suffix(quote))
        .ok_or("its literal has no closing quote")?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let value = match c {
            c if c == quote => return Err("its literal ends before the line does"),
            '\\' => escape(&mut chars, is_bytes)?,
            c => c.into(),
        };
        if is_bytes {
            let byte =
                u8::try_from(value).map_err(|_| "its byte string has a character beyond a byte")?;
            bytes.push(byte);
        } else {
            let c = char::from_u32(value).ok_or("it has an escape of no character")?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(bytes)
}

/// The value of an escape whose backslash was read.
fn escape(chars: &mut std::str::Chars<'_>, is_bytes: bool) -> Result<u32, &'static str> {
    let unknown = "it has an unknown escape";
    let digits = match chars.next().ok_or("its last escape is truncated")? {
        'n' => return Ok('\n'.into()),
        'r' => return Ok('\r'.into()),
        't' => return Ok('\t'.into()),
        c @ ('\\' | '\'' | '"') => return Ok(c.into()),
        'x' => 2,
        'u' if !is_bytes => 4,
        'U' if !is_bytes => 8,
        _ => return Err(unknown),
    };
    let mut value = 0u32;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(16));
        let digit = digit.ok_or("it has a truncated escape")?;
        value = value.checked_mul(16).ok_or(unknown)? + digit;
    }
    Ok(value)
}

/// A token in the form of GGUF files: Python's notation of the byte string without `b` and quotes.
fn escaped(token: &[u8]) -> String {
    let has = |byte| token.contains(&byte);
    let escapes_quote = has(b'\'') && has(b'"');
    let mut text = String::with_capacity(token.len());
    for &byte in token {
        match byte {
            b'\\' => text.push_str(r"\\"),
            b'\t' => text.push_str(r"\t"),
            b'\n' => text.push_str(r"\n"),
            b'\r' => text.push_str(r"\r"),
            b'\'' if escapes_quote => text.push_str(r"\'"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_index_and_bytes() {
        for (line, index, bytes) in [
            (r"1 '\x00' 1", 1, &b"\0"[..]),
            ("33 ' ' 1", 33, b" "),
            (r#"40 "'" 1"#, 40, b"'"),
            (r"454 '\'\\' 2", 454, b"'\\"),
            (r"129 b'\x80' 1", 129, b"\x80"),
            ("300 'a b' 3", 300, b"a b"),
            (r"9 '\xa0' 2", 9, b"\xc2\xa0"),
            ("8 '\u{e9}' 2", 8, b"\xc3\xa9"),
            (r"7 '\u200b' 3", 7, b"\xe2\x80\x8b"),
            (r"7 '\U0001f600' 4", 7, b"\xf0\x9f\x98\x80"),
        ] {
            assert_eq!(entry(line), Ok((index, bytes.to_vec())), "{line}");
        }
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        for (line, what) in [
            ("", "it is not of the form: index 'literal' length"),
            ("1 'a'", "it is not of the form: index 'literal' length"),
            ("x 'a' 1", "its index is not a number"),
            ("1 'a' x", "its length is not a number"),
            ("1 'a' 2", "its literal has a different length"),
            ("1 '' 0", "its literal is empty"),
            ("1 a 1", "its literal has no quotes"),
            ("1 'a 1", "its literal has no closing quote"),
            ("1 ' 1", "its literal has no closing quote"),
            ("1 'a'+'b' 2", "its literal ends before the line does"),
            (r"1 '\' 1", "its last escape is truncated"),
            (r"1 '\x1' 1", "it has a truncated escape"),
            (r"1 '\q' 1", "it has an unknown escape"),
            (r"1 b'\u0041' 1", "it has an unknown escape"),
            (r"1 '\ud800' 3", "it has an escape of no character"),
            (r"1 '\Uffffffff' 3", "it has an escape of no character"),
            (
                "1 b'\u{3042}' 3",
                "its byte string has a character beyond a byte",
            ),
        ] {
            assert_eq!(entry(line), Err(what), "{line}");
        }
    }

    #[test]
    fn tokens_are_written_as_llama_cpp_reads_them() {
        for (token, text) in [
            (&b"a b"[..], "a b"),
            (b"\n\t\r\\", r"\n\t\r\\"),
            (b"\x00\x7f\xff", r"\x00\x7f\xff"),
            (b"it's", "it's"),
            (b"\"'", r#""\'"#),
        ] {
            assert_eq!(escaped(token), text);
        }
    }
}
