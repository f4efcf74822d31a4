use super::{Algorithm, TokenType, Tokenizer, TokenizerError, bpe, spm};

/// Options for decoding ids to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeOptions {
    /// Write control and unknown tokens as their text (`<|im_end|>`) instead of leaving them out.
    pub render_special: bool,
}

impl Tokenizer {
    /// The bytes that one token stands for; control tokens stand for their own text.
    ///
    /// They may be incomplete characters: see [`Utf8Stream`](crate::Utf8Stream).
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`]
    pub fn token_bytes(&self, id: u32) -> Result<Vec<u8>, TokenizerError> {
        let mut bytes = Vec::new();
        self.append_token(
            id,
            DecodeOptions {
                render_special: true,
            },
            &mut bytes,
        )?;
        Ok(bytes)
    }

    /// Appends the bytes that one token stands for. Control tokens are omitted unless they are
    /// rendered.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`]
    pub fn append_token(
        &self,
        id: u32,
        options: DecodeOptions,
        bytes: &mut Vec<u8>,
    ) -> Result<(), TokenizerError> {
        let (Some(text), Some(token_type)) = (self.vocab.text(id), self.vocab.token_type(id))
        else {
            return Err(TokenizerError::IdOutOfRange {
                id,
                tokens: self.vocab.len(),
            });
        };
        match token_type {
            TokenType::Control | TokenType::Unknown if !options.render_special => {}
            // Special tokens are not encoded, whatever the encoding of the others.
            _ if token_type.is_special() => bytes.extend_from_slice(text.as_bytes()),
            _ => match &self.algorithm {
                Algorithm::World(world) => world.push_token_bytes(id, bytes),
                Algorithm::Bpe(_) => bpe::push_token_bytes(text, bytes),
                Algorithm::Spm(_) | Algorithm::Unigram(_) => {
                    spm::push_token_bytes(text, token_type, bytes)
                }
            },
        }
        Ok(())
    }

    /// The bytes of a whole text, without the space that SentencePiece adds before it.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`]
    pub fn decode(&self, ids: &[u32], options: DecodeOptions) -> Result<Vec<u8>, TokenizerError> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        let mut strip = match &self.algorithm {
            Algorithm::Bpe(_) | Algorithm::World(_) => false,
            Algorithm::Spm(spm) => spm.adds_space_prefix(),
            Algorithm::Unigram(unigram) => unigram.adds_space_prefix(),
        };
        for &id in ids {
            let start = bytes.len();
            self.append_token(id, options, &mut bytes)?;
            let is_text = !self.vocab.token_type(id).is_some_and(TokenType::is_special);
            if strip && is_text {
                strip = false;
                if bytes.get(start) == Some(&b' ') {
                    bytes.remove(start);
                }
            }
        }
        Ok(bytes)
    }

    /// [`Self::decode`] as text, with U+FFFD in place of bytes that are not UTF-8.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`]
    pub fn decode_lossy(
        &self,
        ids: &[u32],
        options: DecodeOptions,
    ) -> Result<String, TokenizerError> {
        let bytes = self.decode(ids, options)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}
