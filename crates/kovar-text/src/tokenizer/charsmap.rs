use super::error::TokenizerError;
use super::spec::key;

/// The maximum length of a replaced text, in bytes: a damaged trie may contain a cycle.
const MAX_REPLACED: usize = 256;

/// The maximum length of a replacement, in bytes. Unicode's compatibility forms have at most 33.
const MAX_REPLACEMENT: usize = 256;

/// SentencePiece's precompiled normalisation: at each position, the longest prefix of the text that
/// is in a trie is replaced.
///
/// The blob is not trusted. It contains the length of the trie in bytes (u32), the trie, and the
/// replacements, each followed by a zero byte. The trie is a double array of 32-bit units in the
/// format of darts-clone (<https://github.com/s-yata/darts-clone>); its values are offsets of
/// replacements.
#[derive(Debug)]
pub(crate) struct Charsmap {
    units: Vec<u32>,
    replacements: String,
}

/// A unit of the double array.
#[derive(Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn has_leaf(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & 0x7FFF_FFFF) as usize
    }

    /// The byte on the edge to this unit; units with values have none.
    fn label(self) -> u32 {
        self.0 & 0x8000_00FF
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 0x200) >> 6)) as usize
    }
}

impl Charsmap {
    /// # Errors
    /// [`TokenizerError::BadCharsmap`] for a damaged blob.
    pub fn new(blob: &[u8]) -> Result<Self, TokenizerError> {
        let (len, rest) = blob
            .split_first_chunk()
            .ok_or(bad("its length is missing"))?;
        let len = u32::from_le_bytes(*len) as usize;
        let (trie, replacements) = rest
            .split_at_checked(len)
            .ok_or(bad("its trie is truncated"))?;
        let (units, []) = trie.as_chunks() else {
            return Err(bad("its trie is not made of 32-bit units"));
        };
        let replacements =
            std::str::from_utf8(replacements).map_err(|_| bad("its replacements are not UTF-8"))?;
        Ok(Self {
            units: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(),
            replacements: replacements.to_owned(),
        })
    }

    /// The length of the longest prefix of `text` to be replaced, at most 256 bytes, and its
    /// replacement.
    ///
    /// # Errors
    /// [`TokenizerError::BadCharsmap`] if the trie leads out of the blob, into the middle of a
    /// character, or to a replacement of more than 256 bytes.
    pub fn replacement(&self, text: &str) -> Result<Option<(usize, &str)>, TokenizerError> {
        let Some(mut unit) = self.unit(0) else {
            return Ok(None);
        };
        let mut at = unit.offset();
        let mut longest = None;
        for (read, byte) in text.bytes().take(MAX_REPLACED).enumerate() {
            at ^= usize::from(byte);
            let Some(next) = self.unit(at) else { break };
            unit = next;
            if unit.label() != u32::from(byte) {
                break;
            }
            at ^= unit.offset();
            if unit.has_leaf() {
                let leaf = self.unit(at).ok_or(bad("its trie leads out of bounds"))?;
                longest = Some((read + 1, leaf.value()));
            }
        }
        let Some((read, offset)) = longest else {
            return Ok(None);
        };
        if !text.is_char_boundary(read) {
            return Err(bad("it replaces a part of a character"));
        }
        let rest = self.replacements.get(offset..);
        let rest = rest.ok_or(bad("a replacement lies out of bounds"))?;
        let len = rest.bytes().take(MAX_REPLACEMENT + 1).position(|b| b == 0);
        let len = len.ok_or(bad("a replacement is too long or has no end"))?;
        Ok(rest.get(..len).map(|replacement| (read, replacement)))
    }

    fn unit(&self, at: usize) -> Option<Unit> {
        self.units.get(at).copied().map(Unit)
    }
}

fn bad(fault: &'static str) -> TokenizerError {
    TokenizerError::BadCharsmap {
        key: key::CHARSMAP,
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(units: &[u32], replacements: &[u8]) -> Vec<u8> {
        let trie: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let len = (trie.len() as u32).to_le_bytes();
        [&len[..], &trie, replacements].concat()
    }

    /// A trie with one key, `byte`, whose value is `offset`.
    fn single(byte: u8, offset: u32) -> Vec<u32> {
        let mut units = vec![0; 1024];
        units[0] = 256 << 10;
        let at = 256 ^ usize::from(byte);
        units[at] = u32::from(byte) | 1 << 8 | 256 << 10;
        units[at ^ 256] = 0x8000_0000 | offset;
        units
    }

    #[test]
    fn a_byte_leads_to_its_replacement() {
        let map = Charsmap::new(&blob(&single(b'x', 3), b"no\0yes\0")).unwrap();
        assert_eq!(map.replacement("xy").unwrap(), Some((1, "yes")));
        assert_eq!(map.replacement("yx").unwrap(), None);
        assert_eq!(map.replacement("").unwrap(), None);
    }

    #[test]
    fn the_walk_through_a_cyclic_trie_is_bounded() {
        let mut units = vec![0; 1024];
        units[0] = 256 << 10;
        // An `x` leads back to 256, which has a value too.
        let x = u32::from(b'x');
        units[256 ^ usize::from(b'x')] = x | 1 << 8 | x << 10;
        units[256] = 0x8000_0000;
        let map = Charsmap::new(&blob(&units, b"y\0")).unwrap();
        assert_eq!(
            map.replacement(&"x".repeat(10_000)).unwrap(),
            Some((MAX_REPLACED, "y"))
        );
    }

    #[test]
    fn a_damaged_blob_is_an_error_that_says_how() {
        let fault = |blob: &[u8]| match Charsmap::new(blob) {
            Err(TokenizerError::BadCharsmap { fault, .. }) => fault,
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(&[1, 2]), "its length is missing");
        assert_eq!(fault(&[5, 0, 0, 0, 1]), "its trie is truncated");
        assert_eq!(
            fault(&[1, 0, 0, 0, 1]),
            "its trie is not made of 32-bit units"
        );
        assert_eq!(fault(&[0, 0, 0, 0, 0xFF]), "its replacements are not UTF-8");
        let used = |units: &[u32], replacements: &[u8], text: &str| {
            let map = Charsmap::new(&blob(units, replacements)).unwrap();
            match map.replacement(text) {
                Err(TokenizerError::BadCharsmap { fault, .. }) => fault,
                other => panic!("{other:?}"),
            }
        };
        let outside = "a replacement lies out of bounds";
        assert_eq!(used(&single(b'x', 9), b"a\0", "x"), outside);
        let endless = "a replacement is too long or has no end";
        assert_eq!(used(&single(b'x', 0), b"a", "x"), endless);
        assert_eq!(used(&single(b'x', 0), &[b'a'; 300], "x"), endless);
        let part = "it replaces a part of a character";
        assert_eq!(used(&single(0xC3, 0), b"a\0", "\u{e9}"), part);
        let mut out = single(b'x', 0);
        out[256 ^ usize::from(b'x')] |= 0x7FF0_0000;
        assert_eq!(used(&out, b"a\0", "x"), "its trie leads out of bounds");
        let empty = Charsmap::new(&blob(&[], b"")).unwrap();
        assert_eq!(empty.replacement("x").unwrap(), None);
    }
}
