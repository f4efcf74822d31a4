//! Maps from byte positions to marks.

use std::collections::BTreeMap;
use std::ops::Range;

/// A mark for each byte of some memory; bytes without a mark are undefined.
#[derive(Clone, Debug)]
pub(crate) struct Intervals<T>(BTreeMap<usize, (usize, T)>);

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy> Intervals<T> {
    /// The marked parts of `range`, in order.
    pub(crate) fn within(&self, range: Range<usize>) -> Vec<(Range<usize>, T)> {
        let before = self.0.range(..=range.start).next_back();
        let from = before.map_or(range.start, |(&start, _)| start);
        let parts = self.0.range(from..range.end.max(from));
        parts
            .map(|(&start, &(end, mark))| (start.max(range.start)..end.min(range.end), mark))
            .filter(|(part, _)| !part.is_empty())
            .collect()
    }

    /// Removes the marks of `range`.
    pub(crate) fn clear(&mut self, range: Range<usize>) {
        for (part, mark) in self.within(range.clone()) {
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
    pub(crate) fn set(&mut self, range: Range<usize>, mark: T) {
        if range.is_empty() {
            return;
        }
        self.clear(range.clone());
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
            let probe = probe.0..probe.0 + probe.1;
            let mut found = [None; 64];
            for (part, mark) in intervals.within(probe.clone()) {
                prop_assert!(probe.start <= part.start && part.end <= probe.end);
                prop_assert!(found[part.clone()].iter().all(Option::is_none));
                found[part].fill(Some(mark));
            }
            prop_assert_eq!(&found[probe.clone()], &bytes[probe]);
        }
    }
}
