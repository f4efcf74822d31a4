//! A reader that never reads beyond the end of its bytes.

use super::error::{GgufError, GgufField};

/// A position in the bytes of a file.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A read that goes beyond the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    offset: usize,
    needed: u64,
    remaining: usize,
}

impl Short {
    /// The error of the field that was being read.
    pub(super) fn of(self, field: GgufField) -> GgufError {
        GgufError::Truncated {
            field,
            offset: self.offset,
            needed: self.needed,
            remaining: self.remaining,
        }
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], Short> {
        let taken = usize::try_from(len)
            .ok()
            .and_then(|len| self.at.checked_add(len))
            .and_then(|end| Some((end, self.bytes.get(self.at..end)?)));
        match taken {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => Err(Short {
                offset: self.at,
                needed: len,
                remaining: self.remaining(),
            }),
        }
    }

    /// The next `N` bytes as an array.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let mut array = [0; N];
        for (to, from) in array.iter_mut().zip(self.take(N as u64)?) {
            *to = *from;
        }
        Ok(array)
    }

    /// The next 32-bit unsigned integer.
    pub(super) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 64-bit unsigned integer.
    pub(super) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next string: its length in 64 bits, then its bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Short> {
        let len = self.u64()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_beyond_the_end_reads_nothing() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 9]);
        assert_eq!(cursor.u32(), Ok(1));
        let short = cursor.u32().unwrap_err();
        assert_eq!(
            short,
            Short {
                offset: 4,
                needed: 4,
                remaining: 1
            }
        );
        assert!(cursor.take(u64::MAX).is_err());
        assert_eq!(cursor.take(1), Ok(&[9][..]));
        assert_eq!(cursor.remaining(), 0);
    }
}
