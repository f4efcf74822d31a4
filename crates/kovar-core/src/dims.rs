//! Dimensions of a value.

use std::fmt;
use std::ops::Deref;

/// The largest number of dimensions of a value.
pub const MAX_RANK: usize = 6;

/// Up to [`MAX_RANK`] sizes (or strides), outermost first. Rank 0 is a single element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dims {
    rank: u8,
    sizes: [usize; MAX_RANK],
}

impl Dims {
    /// Copies `sizes`; `None` if there are more than [`MAX_RANK`].
    pub fn new(sizes: &[usize]) -> Option<Self> {
        let mut dims = Self {
            rank: u8::try_from(sizes.len()).ok()?,
            sizes: [0; MAX_RANK],
        };
        dims.sizes.get_mut(..sizes.len())?.copy_from_slice(sizes);
        Some(dims)
    }

    /// `rank` sizes (at most [`MAX_RANK`]), `f(i)` the one at `i` from the outermost.
    pub(crate) fn from_fn(rank: usize, mut f: impl FnMut(usize) -> usize) -> Self {
        let rank = rank.min(MAX_RANK);
        let mut dims = Self {
            rank: rank as u8,
            sizes: [0; MAX_RANK],
        };
        for (i, size) in dims.sizes.iter_mut().take(rank).enumerate() {
            *size = f(i);
        }
        dims
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// The product of the sizes (1 for rank 0); `None` if the product of the sizes that are not
    /// zero overflows `isize`. So the product of any of the sizes does not overflow.
    pub fn elements(&self) -> Option<usize> {
        let others = self.iter().filter(|&&size| size != 0);
        let product = others
            .copied()
            .try_fold(1usize, usize::checked_mul)
            .filter(|&product| isize::try_from(product).is_ok())?;
        Some(if self.contains(&0) { 0 } else { product })
    }

    /// The size counted from the innermost dimension (0 is the last); 1 beyond the outermost.
    pub fn from_end(&self, i: usize) -> usize {
        self.rank()
            .checked_sub(i + 1)
            .and_then(|at| self.get(at).copied())
            .unwrap_or(1)
    }

    /// The same sizes with the innermost one replaced; rank 0 stays as it is.
    pub fn with_last(mut self, size: usize) -> Self {
        if let Some(last) = self.sizes[..usize::from(self.rank)].last_mut() {
            *last = size;
        }
        self
    }
}

impl Deref for Dims {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.sizes[..usize::from(self.rank)]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_whose_products_overflow_have_no_count_of_elements() {
        assert_eq!(Dims::new(&[usize::MAX, 2]).unwrap().elements(), None);
        assert_eq!(Dims::new(&[1 << 40, 1 << 40, 0]).unwrap().elements(), None);
        assert_eq!(Dims::new(&[1 << 40, 0]).unwrap().elements(), Some(0));
        assert_eq!(Dims::new(&[]).unwrap().elements(), Some(1));
        assert!(Dims::new(&[1; 7]).is_none());
    }

    #[test]
    fn sizes_beyond_the_outermost_are_one() {
        let dims = Dims::new(&[2, 3]).unwrap();
        assert_eq!(
            (dims.from_end(0), dims.from_end(1), dims.from_end(2)),
            (3, 2, 1)
        );
    }
}
