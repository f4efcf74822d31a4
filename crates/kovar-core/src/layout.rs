//! Strided windows: which elements of a storage a value names.

use std::ops::Range;

use crate::dims::{Dims, MAX_RANK};

/// Dims, strides and offset of a value, all counted in elements.
///
/// Element `(i0, i1, ..)` lies at `offset + i0 * strides[0] + i1 * strides[1] + ..`. Row-major,
/// outermost first. A stride of 0 repeats an element (a broadcast) and is legal for reading only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    dims: Dims,
    strides: Dims,
    offset: usize,
}

/// The elements that a layout touches, as the half-open range from its first to its last.
pub type Span = Range<usize>;

impl Layout {
    /// The row-major layout without gaps; `None` if the element count overflows.
    pub fn contiguous(dims: Dims) -> Option<Self> {
        dims.elements()?;
        Some(Self {
            dims,
            strides: contiguous_strides(&dims),
            offset: 0,
        })
    }

    /// A window with explicit strides and offset, in elements; `None` if the ranks differ or its
    /// last element's position overflows.
    pub fn strided(dims: Dims, strides: Dims, offset: usize) -> Option<Self> {
        let layout = Self {
            dims,
            strides,
            offset,
        };
        dims.elements()?;
        (dims.rank() == strides.rank() && layout.checked_end().is_some()).then_some(layout)
    }

    /// Sizes, outermost first.
    pub fn dims(&self) -> &Dims {
        &self.dims
    }

    /// Distances between neighbours along each dimension, in elements.
    pub fn strides(&self) -> &Dims {
        &self.strides
    }

    /// Position of the first element, in elements from the start of the storage.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// The stride counted from the innermost dimension (0 is the last); 0 beyond the outermost.
    pub fn stride_from_end(&self, i: usize) -> usize {
        self.strides
            .rank()
            .checked_sub(i + 1)
            .and_then(|at| self.strides.get(at).copied())
            .unwrap_or(0)
    }

    /// Whether the elements lie in row-major order without gaps (at any offset).
    pub fn is_contiguous(&self) -> bool {
        let expected = contiguous_strides(&self.dims);
        self.elements() == 0
            || self
                .dims
                .iter()
                .zip(self.strides.iter().zip(expected.iter()))
                .all(|(&size, (stride, expected))| size == 1 || stride == expected)
    }

    /// Whether neighbours along the last dimension are neighbours in memory.
    pub fn has_contiguous_rows(&self) -> bool {
        self.dims.from_end(0) <= 1 || self.stride_from_end(0) == 1
    }

    /// Whether two index tuples may name the same element.
    pub fn repeats_elements(&self) -> bool {
        if self.elements() <= 1 {
            return false;
        }
        let mut by_stride: Vec<(usize, usize)> = self
            .strides
            .iter()
            .copied()
            .zip(self.dims.iter().copied())
            .filter(|&(_, size)| size > 1)
            .collect();
        by_stride.sort_unstable();
        let mut reach = 0;
        for (stride, size) in by_stride {
            if stride <= reach {
                return true;
            }
            reach += stride * (size - 1);
        }
        false
    }

    /// The touched elements; empty (at the offset) if a size is 0.
    pub fn span(&self) -> Span {
        let end = self.checked_end().unwrap_or(usize::MAX);
        self.offset..end
    }

    fn checked_end(&self) -> Option<usize> {
        if self.dims.contains(&0) {
            return Some(self.offset);
        }
        self.dims
            .iter()
            .zip(self.strides.iter())
            .try_fold(self.offset, |end, (&size, &stride)| {
                end.checked_add((size - 1).checked_mul(stride)?)
            })?
            .checked_add(1)
    }

    /// The window of `range` along dimension `dim`; `None` if either is out of range.
    pub fn slice(&self, dim: usize, range: Range<usize>) -> Option<Self> {
        let size = *self.dims.get(dim)?;
        if range.start > range.end || range.end > size {
            return None;
        }
        let mut layout = *self;
        layout.dims = Dims::from_fn(self.dims.rank(), |i| {
            if i == dim { range.len() } else { self.dims[i] }
        });
        // An empty window keeps its offset, since no check covers one beyond the storage.
        if layout.elements() > 0 {
            layout.offset = self
                .offset
                .checked_add(range.start.checked_mul(self.strides[dim])?)?;
        }
        Some(layout)
    }

    /// Dimension `order[i]` becomes dimension `i`; `None` unless `order` is a permutation.
    pub fn permute(&self, order: &[usize]) -> Option<Self> {
        let rank = self.dims.rank();
        let mut seen = [false; MAX_RANK];
        for &from in order {
            let slot = seen.get_mut(from).filter(|_| from < rank)?;
            if std::mem::replace(slot, true) {
                return None;
            }
        }
        (order.len() == rank).then(|| Self {
            dims: Dims::from_fn(rank, |i| self.dims[order[i]]),
            strides: Dims::from_fn(rank, |i| self.strides[order[i]]),
            offset: self.offset,
        })
    }

    /// The same elements in the same order under other dims; `None` if the element counts differ
    /// or the strides do not allow it without a copy.
    pub fn reshape(&self, dims: Dims) -> Option<Self> {
        if dims.elements()? != self.elements() {
            return None;
        }
        if self.elements() == 0 {
            return Some(Self {
                dims,
                strides: contiguous_strides(&dims),
                offset: self.offset,
            });
        }
        // Merge the old dims into runs that are each contiguous, then split each run into new dims.
        let merged = collapse(&[self])?;
        let (sizes, strides) = (merged.dims, merged.strides.first()?);
        let mut new_strides = [0; MAX_RANK];
        let mut run = sizes.rank();
        let mut left = 1;
        let mut stride = 0;
        for at in (0..dims.rank()).rev() {
            let size = dims[at];
            if size == 1 {
                new_strides[at] = stride.max(1);
                continue;
            }
            if left == 1 {
                run = run.checked_sub(1)?;
                left = sizes[run];
                stride = strides[run];
            }
            if left % size != 0 {
                return None;
            }
            new_strides[at] = stride;
            stride *= size;
            left /= size;
        }
        Some(Self {
            dims,
            strides: Dims::from_fn(dims.rank(), |i| new_strides[i]),
            offset: self.offset,
        })
    }

    /// Repeats dimensions of size 1, and adds outer ones, until the dims are `dims`; `None` if a
    /// size is neither 1 nor that of `dims`, or the element count overflows.
    pub fn broadcast_to(&self, dims: Dims) -> Option<Self> {
        dims.elements()?;
        let added = dims.rank().checked_sub(self.dims.rank())?;
        let mut strides = [0; MAX_RANK];
        for (at, stride) in strides.iter_mut().enumerate().take(dims.rank()).skip(added) {
            let size = self.dims[at - added];
            if size == dims[at] {
                *stride = self.strides[at - added];
            } else if size != 1 {
                return None;
            }
        }
        Some(Self {
            dims,
            strides: Dims::from_fn(dims.rank(), |i| strides[i]),
            offset: self.offset,
        })
    }
}

/// Strides of the row-major layout without gaps.
fn contiguous_strides(dims: &Dims) -> Dims {
    let mut strides = [1; MAX_RANK];
    let mut product = 1usize;
    for at in (0..dims.rank()).rev() {
        strides[at] = product;
        product = product.saturating_mul(dims[at].max(1));
    }
    Dims::from_fn(dims.rank(), |i| strides[i])
}

/// Layouts of equal dims, after dims that all layouts traverse as one are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collapsed {
    /// The merged sizes, outermost first, without sizes of 1; rank 1 at least.
    pub dims: Dims,
    /// The strides of each layout along those dims, in elements.
    pub strides: Vec<Dims>,
}

/// Merges neighbouring dims that every layout traverses as one dimension; `None` if
/// the layouts' dims differ or there are none. Element order is kept.
pub fn collapse(layouts: &[&Layout]) -> Option<Collapsed> {
    let dims = layouts.first()?.dims;
    if layouts.iter().any(|layout| layout.dims != dims) {
        return None;
    }
    let mut sizes = [1; MAX_RANK];
    let mut strides = vec![[1; MAX_RANK]; layouts.len()];
    let mut rank = 0;
    for at in (0..dims.rank()).filter(|&at| dims[at] != 1) {
        let merges = rank > 0
            && layouts.iter().zip(&strides).all(|(layout, kept)| {
                layout.strides[at].checked_mul(dims[at]) == Some(kept[rank - 1])
            });
        if merges {
            sizes[rank - 1] *= dims[at];
        } else {
            sizes[rank] = dims[at];
            rank += 1;
        }
        for (layout, kept) in layouts.iter().zip(&mut strides) {
            kept[rank - 1] = layout.strides[at];
        }
    }
    let rank = rank.max(1);
    Some(Collapsed {
        dims: Dims::from_fn(rank, |i| sizes[i]),
        strides: strides
            .iter()
            .map(|kept| Dims::from_fn(rank, |i| kept[i]))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dims(sizes: &[usize]) -> Dims {
        Dims::new(sizes).unwrap()
    }

    fn positions(layout: &Layout) -> Vec<usize> {
        (0..layout.elements())
            .map(|mut i| {
                let mut at = layout.offset();
                for d in (0..layout.dims().rank()).rev() {
                    at += i % layout.dims()[d] * layout.strides()[d];
                    i /= layout.dims()[d];
                }
                at
            })
            .collect()
    }

    #[test]
    fn a_permuted_layout_reshapes_only_where_no_copy_is_needed() {
        let layout = Layout::contiguous(dims(&[2, 3, 4])).unwrap();
        let permuted = layout.permute(&[1, 0, 2]).unwrap();
        assert!(permuted.reshape(dims(&[6, 4])).is_none());
        assert!(permuted.reshape(dims(&[3, 2, 2, 2])).is_some());
        assert!(layout.permute(&[1, 1, 0]).is_none());
    }

    #[test]
    fn an_empty_window_stays_within_the_storage() {
        let empty = Layout::contiguous(dims(&[0, 100])).unwrap();
        assert_eq!(empty.slice(1, 50..60).unwrap().span(), 0..0);
        let full = Layout::contiguous(dims(&[2, 3])).unwrap();
        assert_eq!(full.slice(0, 2..2).unwrap().span(), 0..0);
    }

    #[test]
    fn a_broadcast_repeats_elements() {
        let layout = Layout::contiguous(dims(&[3, 1])).unwrap();
        assert!(!layout.repeats_elements());
        let broadcast = layout.broadcast_to(dims(&[2, 3, 4])).unwrap();
        assert!(broadcast.repeats_elements());
        assert_eq!(broadcast.span(), 0..3);
        assert!(layout.broadcast_to(dims(&[4, 4])).is_none());
        assert!(layout.broadcast_to(dims(&[1 << 40, 3, 1 << 40])).is_none());
    }

    #[test]
    fn a_window_that_overflows_is_refused() {
        assert!(Layout::strided(dims(&[2]), dims(&[usize::MAX]), 1).is_none());
        assert!(Layout::strided(dims(&[2]), dims(&[1, 1]), 0).is_none());
    }

    proptest! {
        #[test]
        fn views_name_the_elements_that_indexing_does(
            sizes in prop::collection::vec(1usize..5, 1..5),
            seed in 0usize..1000,
        ) {
            let layout = Layout::contiguous(dims(&sizes)).unwrap();
            let rank = sizes.len();
            let order: Vec<usize> = (0..rank).map(|i| (i + seed) % rank).collect();
            let permuted = layout.permute(&order).unwrap();
            let dim = seed % rank;
            let size = permuted.dims()[dim];
            let sliced = permuted.slice(dim, size / 2..size).unwrap();
            let at = positions(&sliced);
            prop_assert!(at.iter().all(|p| sliced.span().contains(p)));
            prop_assert_eq!(sliced.span().start, at[0]);
            prop_assert!(!sliced.repeats_elements());
            let flat = dims(&[sliced.elements()]);
            if let Some(reshaped) = sliced.reshape(flat) {
                prop_assert_eq!(positions(&reshaped), at.clone());
            }
            let merged = collapse(&[&sliced]).unwrap();
            let again = Layout::strided(merged.dims, merged.strides[0], sliced.offset()).unwrap();
            prop_assert_eq!(positions(&again), at);
        }
    }
}
