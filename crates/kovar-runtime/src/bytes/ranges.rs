//! Sets of byte positions as sorted ranges.

use std::ops::Range;

/// A set of byte positions of one storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    /// Sorted, not empty, and neither overlapping nor touching.
    ranges: Vec<Range<usize>>,
}

impl RangeSet {
    /// The empty set.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The positions as sorted ranges with gaps between them.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Whether there are no positions.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a position of `range` is in the set.
    pub(crate) fn overlaps(&self, range: &Range<usize>) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        !range.is_empty() && self.ranges.get(at).is_some_and(|r| r.start < range.end)
    }

    /// The parts of `range` that are in the set.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        let from = self.ranges.get(at..).unwrap_or_default().iter();
        let end = range.end;
        from.take_while(move |r| r.start < end)
            .map(move |r| r.start.max(range.start)..r.end.min(range.end))
            .filter(|part| !part.is_empty())
    }

    /// The parts of `range` that are not in the set.
    pub(crate) fn gaps(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for part in self.within(range.clone()) {
            if at < part.start {
                gaps.push(at..part.start);
            }
            at = part.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Adds the positions of `range`.
    pub(crate) fn insert(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        let touched = self.ranges.get(from..to).unwrap_or_default();
        let start = touched
            .first()
            .map_or(range.start, |r| r.start.min(range.start));
        let end = touched.last().map_or(range.end, |r| r.end.max(range.end));
        self.ranges.splice(from..to, std::iter::once(start..end));
    }

    /// Removes the positions of `range`.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let from = self.ranges.partition_point(|r| r.end <= range.start);
        let to = self.ranges.partition_point(|r| r.start < range.end);
        let touched = self.ranges.get(from..to).unwrap_or_default();
        let before = touched.first().map(|r| r.start..range.start);
        let after = touched.last().map(|r| range.end..r.end);
        let kept = [before, after].into_iter().flatten();
        let kept: Vec<_> = kept.filter(|r| !r.is_empty()).collect();
        self.ranges.splice(from..to, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_range_set_agrees_with_a_bitmap(
            edits in prop::collection::vec((any::<bool>(), 0usize..40, 0usize..12), 0..30),
            probe in (0usize..40, 0usize..12),
        ) {
            let mut set = RangeSet::new();
            let mut bits = [false; 64];
            for (add, start, len) in edits {
                let range = start..start + len;
                bits[range.clone()].fill(add);
                if add { set.insert(range) } else { set.remove(range) }
            }
            let bytes: usize = set.ranges().iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(bytes, bits.iter().filter(|&&bit| bit).count());
            let probe = probe.0..probe.0 + probe.1;
            let window = &bits[probe.clone()];
            prop_assert_eq!(set.overlaps(&probe), window.contains(&true));
            prop_assert_eq!(set.gaps(probe.clone()).is_empty(), !window.contains(&false));
            let within = RangeSet { ranges: set.within(probe.clone()).collect() };
            let gaps = RangeSet { ranges: set.gaps(probe.clone()) };
            for (at, &bit) in bits.iter().enumerate() {
                let inside = probe.contains(&at);
                prop_assert_eq!(within.overlaps(&(at..at + 1)), inside && bit);
                prop_assert_eq!(gaps.overlaps(&(at..at + 1)), inside && !bit);
            }
            let separate = set.ranges().windows(2).all(|pair| pair[0].end < pair[1].start);
            prop_assert!(separate && set.ranges().iter().all(|range| !range.is_empty()));
        }
    }
}
