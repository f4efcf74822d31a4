//! Windows that slide over the last two dimensions of an image.

use super::rules::Operands;
use crate::error::GraphError;

/// Positions of a window along an axis: `(size + 2 padding - dilation (kernel - 1) - 1) / stride
/// + 1`, rounded down. `None` if the window does not fit or a number overflows `isize`.
pub(super) fn positions(
    size: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
) -> Option<usize> {
    let padded = fits(size.checked_add(padding.checked_mul(2)?)?)?;
    let free = padded.checked_sub(extent(kernel, dilation)?)?;
    Some(free.checked_div(stride)? + 1)
}

/// Elements from the first to the last tap of a window; `None` for an empty one.
pub(super) fn extent(kernel: usize, dilation: usize) -> Option<usize> {
    let before = kernel.checked_sub(1)?.checked_mul(dilation)?;
    fits(before.checked_add(1)?)
}

/// Positions are computed with signed numbers.
pub(super) fn fits(size: usize) -> Option<usize> {
    (size <= isize::MAX as usize).then_some(size)
}

/// Fails unless both numbers of an attribute are positive and fit 32 bits.
pub(super) fn positive(
    operands: &Operands<'_>,
    attribute: &'static str,
    values: [usize; 2],
) -> Result<(), GraphError> {
    for value in values {
        let valid = (1..=i32::MAX as usize).contains(&value);
        operands.attribute(valid, attribute, value as f64, "from 1 to 2147483647")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_and_what_does_not_fit_has_none() {
        assert_eq!(positions(5, 3, 1, 1, 1), Some(5));
        assert_eq!(positions(5, 3, 2, 0, 2), Some(1));
        assert_eq!(positions(6, 3, 2, 1, 1), Some(3));
        assert_eq!(positions(4, 3, 1, 0, 2), None);
        assert_eq!(positions(0, 1, 1, 0, 1), None);
        assert_eq!(positions(4, 0, 1, 0, 1), None);
        assert_eq!(positions(4, 1, 0, 0, 1), None);
        assert_eq!(positions(usize::MAX, 1, 1, 0, 1), None);
        assert_eq!(positions(1, usize::MAX, 1, usize::MAX, usize::MAX), None);
    }
}
