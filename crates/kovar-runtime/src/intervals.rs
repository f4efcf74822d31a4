//! Sets and maps of byte positions.

use std::collections::BTreeMap;
use std::ops::Range;

/// A mark for each byte of some memory; bytes without a mark are undefined. Neighbours of the same
/// mark are one interval.
#[derive(Clone, Debug)]
pub(crate) struct Intervals<T>(BTreeMap<usize, (usize, T)>);

/// A set of bytes.
pub(crate) type ByteSet = Intervals<()>;

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + PartialEq> Intervals<T> {
    /// Whether no byte is marked.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The marked parts of `range`, in order.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, T)> {
        let before = self.0.range(..=range.start).next_back();
        let from = before.map_or(range.start, |(&start, _)| start);
        let parts = self.0.range(from..range.end.max(from));
        parts
            .map(move |(&start, &(end, mark))| (start.max(range.start)..end.min(range.end), mark))
            .filter(|(part, _)| !part.is_empty())
    }

    /// Whether a byte of `range` is marked.
    pub(crate) fn overlaps(&self, range: Range<usize>) -> bool {
        self.within(range).next().is_some()
    }

    /// The parts of `range` without a mark, in order.
    pub(crate) fn gaps(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (part, _) in self.within(range.clone()) {
            gaps.push(at..part.start);
            at = part.end;
        }
        gaps.push(at..range.end);
        gaps.retain(|gap| !gap.is_empty());
        gaps
    }

    /// Removes the marks of `range`.
    pub(crate) fn clear(&mut self, range: Range<usize>) {
        let parts: Vec<_> = self.within(range.clone()).collect();
        for (part, mark) in parts {
            let before = self.0.range(..=part.start).next_back();
            let Some((start, end)) = before.map(|(&start, &(end, _))| (start, end)) else {
                continue;
            };
            self.0.remove(&start);
            if start < range.start {
                self.0.insert(start, (range.start, mark));
            }
            if range.end < end {
                self.0.insert(range.end, (end, mark));
            }
        }
    }

    /// Marks `range`.
    pub(crate) fn set(&mut self, mut range: Range<usize>, mark: T) {
        let marked = self.within(range.clone()).next();
        if range.is_empty() || marked == Some((range.clone(), mark)) {
            return;
        }
        self.clear(range.clone());
        let before = self.0.range(..range.start).next_back();
        if let Some((&start, _)) = before.filter(|(_, other)| **other == (range.start, mark)) {
            range.start = start;
        }
        if let Some(&(end, _)) = self.0.get(&range.end).filter(|after| after.1 == mark) {
            self.0.remove(&range.end);
            range.end = end;
        }
        self.0.insert(range.start, (range.end, mark));
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_agree_with_an_array(
            edits in prop::collection::vec((prop::option::of(0u8..4), 0usize..40, 0usize..12), 0..30),
            probe in (0usize..40, 0usize..12),
        ) {
            let mut intervals = Intervals::default();
            let mut bytes = [None; 64];
            for (mark, start, len) in edits {
                let range = start..start + len;
                bytes[range.clone()].fill(mark);
                match mark {
                    Some(mark) => intervals.set(range, mark),
                    None => intervals.clear(range),
                }
            }
            prop_assert_eq!(intervals.is_empty(), bytes.iter().all(Option::is_none));
            let probe = probe.0..probe.0 + probe.1;
            let mut found = [None; 64];
            let mut before = None;
            for (part, mark) in intervals.within(probe.clone()) {
                prop_assert!(probe.start <= part.start && part.end <= probe.end);
                prop_assert!(found[part.clone()].iter().all(Option::is_none));
                prop_assert!(before.replace((part.end, mark)) != Some((part.start, mark)));
                found[part].fill(Some(mark));
            }
            let window = &bytes[probe.clone()];
            prop_assert_eq!(&found[probe.clone()], window);
            prop_assert_eq!(intervals.overlaps(probe.clone()), window.iter().any(Option::is_some));
            for gap in intervals.gaps(probe.clone()) {
                prop_assert!(!gap.is_empty() && probe.start <= gap.start && gap.end <= probe.end);
                prop_assert!(found[gap.clone()].iter().all(Option::is_none));
                found[gap].fill(Some(u8::MAX));
            }
            prop_assert!(found[probe].iter().all(Option::is_some));
        }
    }
}
