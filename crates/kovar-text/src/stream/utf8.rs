/// Joins the bytes of tokens to whole characters.
///
/// The text is that of [`String::from_utf8_lossy`] over all bytes, however they are split into
/// tokens. Bytes that cannot belong to a character become U+FFFD as soon as this is known.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    /// A valid but incomplete character of up to three bytes.
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// An empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bytes of a token and appends to `text` every character that they complete.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.pending.extend_from_slice(bytes);
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = done + invalid.len() == self.pending.len();
            if is_last && may_go_on(invalid) {
                break;
            }
            if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                done += invalid.len();
            }
        }
        self.pending.drain(..done);
    }

    /// Ends the text: an incomplete character becomes U+FFFD. The next text may then begin.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
    }
}

/// Whether more bytes could complete these to a character.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(tokens: &[&[u8]]) -> Vec<String> {
        let mut stream = Utf8Stream::new();
        let mut texts: Vec<String> = tokens
            .iter()
            .map(|token| {
                let mut text = String::new();
                stream.push(token, &mut text);
                text
            })
            .collect();
        let mut rest = String::new();
        stream.finish(&mut rest);
        texts.push(rest);
        texts
    }

    #[test]
    fn a_character_in_three_tokens_appears_with_the_last() {
        assert_eq!(
            stream(&[b"a\xF0\x9F", b"\x98", b"\x80b"]),
            ["a", "", "\u{1F600}b", ""]
        );
    }

    #[test]
    fn an_impossible_byte_is_replaced_at_once() {
        assert_eq!(
            stream(&[b"\xE2\x82", b"A", b"\xFF"]),
            ["", "\u{FFFD}A", "\u{FFFD}", ""]
        );
    }

    #[test]
    fn an_unfinished_character_is_replaced_at_the_end() {
        assert_eq!(stream(&[b"ok\xE4\xB8"]), ["ok", "\u{FFFD}"]);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_lossy_text_of_the_whole(
            tokens in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![any::<u8>(), Just(0xE2), Just(0xF0), Just(0x9F), Just(0x98), Just(0x80)],
                    0..5,
                ),
                0..12,
            )
        ) {
            let whole = tokens.concat();
            let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(stream(&tokens).concat(), String::from_utf8_lossy(&whole));
        }
    }
}
