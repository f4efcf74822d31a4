//! Data and references for the product tests.

/// A small generator of reproducible numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// About normal, variance 1.
    pub fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12)
            .map(|_| (self.next() >> 11) as f64 / (1u64 << 53) as f64)
            .sum();
        (sum - 6.0) as f32
    }

    pub fn normals(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.normal()).collect()
    }
}

/// Squared error over the reference's squared norm.
pub fn nmse(actual: impl IntoIterator<Item = f32>, expected: &[f64]) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    let mut count = 0;
    for (a, e) in actual.into_iter().zip(expected) {
        error += (f64::from(a) - e).powi(2);
        norm += e * e;
        count += 1;
    }
    assert_eq!(count, expected.len());
    assert!(norm > 0.0);
    // A NaN must not pass a comparison.
    if error.is_nan() {
        f64::INFINITY
    } else {
        error / norm
    }
}
