//! Writing a GGUF file whose tensors arrive in pieces.

use std::io::{self, Write};

use crate::error::FileWriteError;

/// A GGUF file that is being written. The header is written; the data of the tensors follows in the
/// order in which they were declared, in pieces of any size. Memory holds only one piece.
///
/// Made by [`GgufWriter::stream`](super::GgufWriter::stream).
#[derive(Debug)]
pub struct GgufStream<W: Write> {
    out: W,
    alignment: usize,
    /// Names and sizes in bytes of the remaining tensors. The next one is the last.
    pending: Vec<(String, usize)>,
    /// Bytes of the next tensor that are already written.
    written: usize,
}

impl<W: Write> GgufStream<W> {
    pub(super) fn start(
        mut out: W,
        header: &[u8],
        alignment: usize,
        mut tensors: Vec<(String, usize)>,
    ) -> Result<Self, FileWriteError> {
        out.write_all(header)?;
        tensors.reverse();
        let mut stream = Self {
            out,
            alignment,
            pending: tensors,
            written: 0,
        };
        stream.pad(header.len())?;
        Ok(stream)
    }

    /// Writes the next bytes of the first tensor that is not yet complete.
    ///
    /// # Errors
    /// The bytes go beyond the end of the tensor, all tensors are complete, or the output fails.
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), FileWriteError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some((name, size)) = self.pending.last() else {
            return Err(FileWriteError::SurplusData {
                surplus: bytes.len(),
            });
        };
        let size = *size;
        if bytes.len() > size - self.written {
            return Err(FileWriteError::WrongSize {
                tensor: name.clone(),
                expected: size,
                actual: self.written + bytes.len(),
            });
        }
        self.out.write_all(bytes)?;
        self.written += bytes.len();
        if self.written == size {
            self.pending.pop();
            self.written = 0;
            self.pad(size)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// A tensor is not complete, or the output fails.
    pub fn finish(mut self) -> Result<W, FileWriteError> {
        if let Some((name, size)) = self.pending.last() {
            return Err(FileWriteError::WrongSize {
                tensor: name.clone(),
                expected: *size,
                actual: self.written,
            });
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Pads to the alignment, after `len` bytes that start at an aligned offset.
    fn pad(&mut self, len: usize) -> Result<(), FileWriteError> {
        let padding = len.wrapping_neg() & (self.alignment - 1);
        io::copy(
            &mut io::Read::take(io::repeat(0), padding as u64),
            &mut self.out,
        )?;
        Ok(())
    }
}
