/// The result of merging a pair of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    /// The lowest rank is merged first.
    pub rank: u32,
    /// The joined token.
    pub id: u32,
}

/// Merge rules by pair of tokens.
#[derive(Debug)]
pub(crate) struct Merges {
    /// The start of each left token's rules in `rules`, and the end of all rules.
    starts: Vec<u32>,
    /// Right token and merge, sorted by left token, then by right token.
    rules: Vec<(u32, Merge)>,
}

impl Merges {
    /// `rules` are left tokens, right tokens and their merges; left tokens are below `vocab_len`.
    /// If a pair has two rules, the one of lower rank is used.
    pub fn new(vocab_len: usize, mut rules: Vec<(u32, u32, Merge)>) -> Self {
        rules.sort_unstable_by_key(|&(left, right, merge)| (left, right, merge.rank));
        rules.dedup_by_key(|&mut (left, right, _)| (left, right));
        let mut starts = vec![0; vocab_len + 1];
        for &(left, ..) in &rules {
            if let Some(count) = starts.get_mut(left as usize + 1) {
                *count += 1;
            }
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let rules = rules
            .into_iter()
            .map(|(_, right, merge)| (right, merge))
            .collect();
        Self { starts, rules }
    }

    /// The rule for two adjacent tokens.
    pub fn get(&self, left: u32, right: u32) -> Option<Merge> {
        let left = left as usize;
        let (&start, &end) = (self.starts.get(left)?, self.starts.get(left + 1)?);
        let rules = self.rules.get(start as usize..end as usize)?;
        let at = rules
            .binary_search_by_key(&right, |&(right, _)| right)
            .ok()?;
        rules.get(at).map(|&(_, merge)| merge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_both_tokens_and_the_first_of_a_pair_counts() {
        let merge = |rank| Merge {
            rank,
            id: 10 + rank,
        };
        let rules = vec![
            (3, 1, merge(0)),
            (0, 2, merge(1)),
            (3, 0, merge(2)),
            (3, 1, merge(3)),
        ];
        let merges = Merges::new(4, rules);
        assert_eq!(merges.get(3, 1), Some(merge(0)));
        assert_eq!(merges.get(3, 0), Some(merge(2)));
        assert_eq!(merges.get(0, 2), Some(merge(1)));
        for (left, right) in [(0, 0), (1, 3), (3, 2), (4, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(merges.get(left, right), None);
        }
    }
}
