use std::cmp::Ordering;

/// A token that may be sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub id: u32,
    /// Never NaN nor minus infinity.
    pub logit: f32,
}

impl Candidate {
    /// More likely tokens first; among equal ones the lower id.
    fn order(&self, other: &Self) -> Ordering {
        other
            .logit
            .total_cmp(&self.logit)
            .then(self.id.cmp(&other.id))
    }
}

/// The tokens that may still be sampled. A prefix may be sorted by likelihood.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    items: Vec<Candidate>,
    /// The length of the sorted prefix, whose tokens are at least as likely as all others.
    sorted: usize,
}

impl Candidates {
    /// All tokens whose logit is a number above minus infinity.
    pub fn fill(&mut self, logits: &[f32]) {
        self.items.clear();
        self.items.reserve(logits.len());
        self.sorted = 0;
        let tokens = (0u32..).zip(logits.iter().copied());
        self.items.extend(
            tokens
                .filter(|&(_, logit)| logit > f32::NEG_INFINITY)
                // Zeros of either sign are equal.
                .map(|(id, logit)| Candidate {
                    id,
                    logit: logit + 0.0,
                }),
        );
    }

    pub fn as_slice(&self) -> &[Candidate] {
        &self.items
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Moves the `n` most likely tokens to the front, sorted.
    pub fn sort_front(&mut self, n: usize) -> &[Candidate] {
        let n = n.min(self.items.len());
        if let Some(rest) = self.items.get_mut(self.sorted..)
            && n > self.sorted
        {
            let wanted = n - self.sorted;
            if wanted < rest.len() {
                rest.select_nth_unstable_by(wanted, Candidate::order);
            }
            if let Some(front) = rest.get_mut(..wanted) {
                front.sort_unstable_by(Candidate::order);
            }
            self.sorted = n;
        }
        self.items.get(..n).unwrap_or_default()
    }

    /// Drops all but the first `n`.
    pub fn truncate(&mut self, n: usize) {
        self.items.truncate(n);
        self.sorted = self.sorted.min(n);
    }

    /// Keeps the tokens for which `keep` returns true, in their order.
    pub fn retain(&mut self, keep: impl Fn(&Candidate) -> bool) {
        let kept = self
            .items
            .iter()
            .take(self.sorted)
            .filter(|item| keep(item))
            .count();
        self.items.retain(keep);
        self.sorted = kept;
    }

    /// Keeps the tokens whose index in [`as_slice`](Self::as_slice) is marked, in their order.
    pub fn retain_marked(&mut self, kept: &[bool]) {
        self.sorted = kept.iter().take(self.sorted).filter(|&&kept| kept).count();
        let mut marks = kept.iter();
        self.items.retain(|_| marks.next() == Some(&true));
    }

    /// Drops the first `n`.
    pub fn drop_front(&mut self, n: usize) {
        let n = n.min(self.items.len());
        self.items.drain(..n);
        self.sorted = self.sorted.saturating_sub(n);
    }

    /// Replaces every logit; `map` must be monotonic.
    pub fn map_logits(&mut self, map: impl Fn(f32) -> f32) {
        for item in &mut self.items {
            item.logit = map(item.logit);
        }
    }

    /// The greatest logit, or minus infinity if there are no candidates.
    pub fn max_logit(&self) -> f32 {
        if let (true, Some(first)) = (self.sorted > 0, self.items.first()) {
            return first.logit;
        }
        self.items
            .iter()
            .map(|item| item.logit)
            .fold(f32::NEG_INFINITY, f32::max)
    }

    /// Sum of [`weight`] over all candidates, in their order.
    pub fn total_weight(&self) -> f64 {
        let max = self.max_logit();
        self.items.iter().map(|item| weight(item.logit, max)).sum()
    }
}

/// The probability of a token relative to the most likely one, exp(logit - max), the same on every
/// platform.
pub(crate) fn weight(logit: f32, max: f32) -> f64 {
    if logit == max {
        // Also where both are infinite.
        return 1.0;
    }
    libm::exp(f64::from(logit) - f64::from(max))
}
