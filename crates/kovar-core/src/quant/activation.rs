//! The 8-bit code of activations in integer matrix products. It is not a GGUF type: codes, scales
//! and sums lie in three arrays, and scales are f32.

/// Elements that share a scale.
pub const BLOCK_LEN: usize = 32;

/// Why a row of activations could not be quantised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// There must be one code per element.
    #[error("a row of {elements} activations takes {elements} codes, the slice has {actual}")]
    CodeCount {
        /// Elements of the row.
        elements: usize,
        /// Length of the slice of codes.
        actual: usize,
    },
    /// There must be one scale and one sum per block.
    #[error(
        "a row of {elements} activations takes {expected} scales and sums, \
         the slices have {scales} and {sums}"
    )]
    BlockCount {
        /// Elements of the row.
        elements: usize,
        /// Blocks of the row, [`block_count`] of its elements.
        expected: usize,
        /// Length of the slice of scales.
        scales: usize,
        /// Length of the slice of sums.
        sums: usize,
    },
}

/// Blocks of a row of `elements`; the last one may be shorter than [`BLOCK_LEN`].
pub fn block_count(elements: usize) -> usize {
    elements.div_ceil(BLOCK_LEN)
}

/// Quantises a row of activations to 8 bits.
///
/// For each block of 32 elements, `d = max|x| / 127`, `q = round(x / d)` with halves going to the
/// even neighbour, and `sum` is the sum of the block's codes. All arithmetic is f32, the quotient
/// is a true division, and codes are clamped to -127..=127 (a subnormal `d` is coarse enough to
/// give quotients beyond). If `d` is zero, all codes are zero. The sum lets a product with
/// `d_w * q_w + m_w` or `d_w * (q_w - 8)` add its offset once per block.
///
/// A row whose length is not a multiple of 32 has a shorter last block.
///
/// A block with a NaN has scale NaN, one with an infinity and no NaN has scale infinity; their
/// codes and sum are zero, so that every product with them is NaN.
///
/// This function defines the code: every backend's own version must give the same codes, scales
/// and sums, and the f64 oracle calls this one when it checks a product with 8-bit activations.
///
/// - `row`: `[n]`, the activations.
/// - `codes`: `[n]`.
/// - `scales`, `sums`: `[block_count(n)]`.
///
/// # Errors
/// [`ActivationError`] if a slice has another length; nothing is written then.
pub fn quantize_activations(
    row: &[f32],
    codes: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i32],
) -> Result<(), ActivationError> {
    let (elements, expected) = (row.len(), block_count(row.len()));
    if codes.len() != elements {
        return Err(ActivationError::CodeCount {
            elements,
            actual: codes.len(),
        });
    }
    if scales.len() != expected || sums.len() != expected {
        return Err(ActivationError::BlockCount {
            elements,
            expected,
            scales: scales.len(),
            sums: sums.len(),
        });
    }
    let blocks = row.chunks(BLOCK_LEN).zip(codes.chunks_mut(BLOCK_LEN));
    for (((values, codes), scale), sum) in blocks.zip(scales).zip(sums) {
        let d = super::largest_magnitude(values).abs() / 127.0;
        *scale = d;
        *sum = 0;
        for (code, value) in codes.iter_mut().zip(values) {
            *code = if d > 0.0 && d.is_finite() {
                (value / d).round_ties_even().clamp(-127.0, 127.0) as i8
            } else {
                0
            };
            *sum += i32::from(*code);
        }
    }
    Ok(())
}
