//! Random numbers that are the same on every machine.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// A number with mean 0 and variance 1, between -6 and 6: the sum of twelve uniform numbers. It
    /// needs no logarithm, so it is rounded the same on every machine.
    pub(super) fn gaussian(&mut self) -> f32 {
        let mut sum = 0;
        for _ in 0..3 {
            let bits = self.next();
            sum += (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum::<u64>();
        }
        (sum as f64 / 65_536.0 - 6.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaussian_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(1);
        let n = 100_000;
        let values: Vec<f64> = (0..n).map(|_| random.gaussian().into()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let variance = values.iter().map(|v| v * v).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_them() {
        let mut random = Random::new(2);
        let mut seen = [false; 7];
        (0..200).for_each(|_| seen[random.below(7)] = true);
        assert_eq!(seen, [true; 7]);
        assert_eq!(random.below(0), 0);
    }
}
