//! Look-up of entries by name, four bytes an entry.

/// The positions of a list of distinct names, in the order of the names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    by_name: Vec<u32>,
}

/// Why names could not be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexError {
    /// The entry at this position repeats the name of an earlier one.
    Duplicate(usize),
    /// There are more than `u32::MAX` entries.
    TooMany,
}

impl NameIndex {
    /// Indexes `entries` by the name that `name` takes from each.
    pub(crate) fn new<T>(entries: &[T], name: impl Fn(&T) -> &str) -> Result<Self, IndexError> {
        let count = u32::try_from(entries.len()).map_err(|_| IndexError::TooMany)?;
        let name_at = |i: u32| entries.get(i as usize).map(&name);
        let mut by_name: Vec<u32> = (0..count).collect();
        by_name.sort_unstable_by(|&a, &b| name_at(a).cmp(&name_at(b)).then(a.cmp(&b)));
        let duplicate = by_name
            .windows(2)
            .filter_map(|pair| match *pair {
                [a, b] if name_at(a) == name_at(b) => Some(b as usize),
                _ => None,
            })
            .min();
        match duplicate {
            Some(position) => Err(IndexError::Duplicate(position)),
            None => Ok(Self { by_name }),
        }
    }

    /// The position of the entry called `wanted`; `entries` and `name` as given to
    /// [`new`](Self::new).
    pub(crate) fn find<'a, T>(
        &self,
        entries: &'a [T],
        wanted: &str,
        name: impl Fn(&T) -> &str,
    ) -> Option<&'a T> {
        let at = self
            .by_name
            .binary_search_by(|&i| entries.get(i as usize).map_or("", &name).cmp(wanted))
            .ok()?;
        entries.get(*self.by_name.get(at)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_other() {
        let names = ["b", "", "a.c", "a"];
        let index = NameIndex::new(&names, |n| n).unwrap();
        for name in &names {
            assert_eq!(index.find(&names, name, |n| n), Some(name));
        }
        assert_eq!(index.find(&names, "a.", |n| n), None);
    }

    #[test]
    fn the_first_repetition_is_reported() {
        let names = ["x", "b", "a", "b", "a"];
        let error = NameIndex::new(&names, |n| n).unwrap_err();
        assert_eq!(error, IndexError::Duplicate(3));
    }
}
