//! GPT-2's printable encoding of bytes: every byte value is written as one character that is
//! neither a space nor a control character, so that vocabularies and merge rules are plain text.
//!
//! Printable Latin-1 characters stand for themselves; the remaining 68 byte values are written as
//! U+0100, U+0101 and so on, in ascending order.

const fn stands_for_itself(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let mut shifted = 0;
    let mut value = 0;
    while value < 256 {
        let byte = value as u8;
        chars[value] = if stands_for_itself(byte) {
            byte as char
        } else {
            shifted += 1;
            match char::from_u32(0xFF + shifted) {
                Some(shifted) => shifted,
                None => '\0',
            }
        };
        value += 1;
    }
    chars
};

const BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let mut value = 0;
    while value < 256 {
        bytes[CHARS[value] as usize] = Some(value as u8);
        value += 1;
    }
    bytes
};

/// The character that stands for `byte`.
pub(crate) fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

/// The byte that `character` stands for.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    BYTES.get(character as usize).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        for byte in 0..=255 {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
        }
        assert_eq!(char_of(b' '), 'Ġ');
        assert_eq!(char_of(b'\n'), 'Ċ');
        assert_eq!(char_of(0xAD), '\u{143}');
    }

    #[test]
    fn characters_outside_the_table_stand_for_no_byte() {
        assert_eq!(byte_of(' '), None);
        assert_eq!(byte_of('\u{144}'), None);
        assert_eq!(byte_of('世'), None);
    }
}
