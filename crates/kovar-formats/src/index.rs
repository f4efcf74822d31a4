//! Look-up of entries by name, at four bytes an entry.

/// The positions of the entries of a list with distinct names, sorted by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    by_name: Vec<u32>,
}

/// Why names could not be indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexError {
    /// The first name that occurs a second time.
    Duplicate(String),
    /// There are more than `u32::MAX` entries.
    TooMany,
}

impl NameIndex {
    /// Indexes `entries` by name; `name` returns the name of an entry.
    pub(crate) fn new<T>(entries: &[T], name: impl Fn(&T) -> &str) -> Result<Self, IndexError> {
        let count = u32::try_from(entries.len()).map_err(|_| IndexError::TooMany)?;
        let name_at = |i: u32| entries.get(i as usize).map(&name);
        let mut by_name: Vec<u32> = (0..count).collect();
        by_name.sort_unstable_by(|&a, &b| name_at(a).cmp(&name_at(b)).then(a.cmp(&b)));
        let duplicate = by_name
            .windows(2)
            .filter_map(|pair| match *pair {
                [a, b] if name_at(a) == name_at(b) => Some(b),
                _ => None,
            })
            .min();
        match duplicate.and_then(name_at) {
            Some(name) => Err(IndexError::Duplicate(name.to_owned())),
            None => Ok(Self { by_name }),
        }
    }

    /// The entry called `wanted`; `entries` and `name` must be those given to [`new`](Self::new).
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
        assert_eq!(error, IndexError::Duplicate("b".to_owned()));
    }
}
