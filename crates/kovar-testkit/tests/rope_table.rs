//! The rope table of the core against the papers' and the reference implementations' formulas,
//! written another way.

use std::f64::consts::PI;

use kovar_core::ops::{RopeScaling, RopeSpec};

const POSITIONS: [i32; 7] = [0, 1, 2, 63, 1000, 8191, 131_071];

/// Compares the table with cos and sin of `angle(pair) * position`, times `magnitude`.
fn check(spec: &RopeSpec, magnitude: f64, angle: impl Fn(usize) -> f64) {
    let mut table = vec![f32::NAN; POSITIONS.len() * spec.row_len()];
    spec.angles().fill_table(&POSITIONS, &mut table);
    let pairs = spec.n_rot / 2;
    for (row, position) in POSITIONS.into_iter().enumerate() {
        for pair in 0..pairs {
            let turn = angle(pair) * f64::from(position);
            let at = (row * pairs + pair) * 2;
            // f64 angles of up to 1e5 radians from two formulas agree to about 1e-10.
            let close =
                |found: f32, expected: f64| (f64::from(found) - expected).abs() < 2e-7 * magnitude;
            assert!(
                close(table[at], turn.cos() * magnitude),
                "cos, {spec:?}, {position}, {pair}"
            );
            assert!(
                close(table[at + 1], turn.sin() * magnitude),
                "sin, {spec:?}, {position}, {pair}"
            );
        }
    }
}

/// `1 / base^(2 pair / n_rot)` by logarithms.
fn plain(spec: &RopeSpec, pair: usize) -> f64 {
    (-(2.0 * pair as f64 / spec.n_rot as f64) * spec.base.ln()).exp()
}

#[test]
fn unscaled_angles_follow_the_paper() {
    for (n_rot, base) in [
        (64, 10_000.0),
        (128, 500_000.0),
        (20, 1_000_000.0),
        (2, 10.0),
    ] {
        let spec = RopeSpec::new(n_rot, base);
        check(&spec, 1.0, |pair| plain(&spec, pair));
    }
}

#[test]
fn linear_scaling_divides_positions() {
    let mut spec = RopeSpec::new(128, 10_000.0);
    spec.scaling = RopeScaling::Linear { factor: 4.0 };
    check(&spec, 1.0, |pair| plain(&spec, pair) / 4.0);
}

#[test]
fn frequency_factors_divide_frequencies() {
    let mut spec = RopeSpec::new(8, 10_000.0);
    let factors = [1.0f32, 1.5, 8.0, 0.25];
    spec.freq_factors = Some(factors.to_vec());
    check(&spec, 1.0, |pair| {
        plain(&spec, pair) / f64::from(factors[pair])
    });
}

#[test]
fn llama3_scaling_is_piecewise_in_the_wavelength() {
    let cases = [
        (8.0, 1.0, 4.0, 8192.0),
        (32.0, 1.0, 4.0, 8192.0),
        (8.0, 2.0, 16.0, 512.0),
    ];
    for (factor, low_freq_factor, high_freq_factor, original_context) in cases {
        for base in [10_000.0, 500_000.0] {
            let mut spec = RopeSpec::new(128, base);
            spec.scaling = RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context,
            };
            let mut kinds = [0; 3];
            let angles: Vec<f64> = (0..64)
                .map(|pair| {
                    let frequency = plain(&spec, pair);
                    let wavelength = 2.0 * PI / frequency;
                    if wavelength < original_context / high_freq_factor {
                        kinds[0] += 1;
                        frequency
                    } else if wavelength > original_context / low_freq_factor {
                        kinds[1] += 1;
                        frequency / factor
                    } else {
                        kinds[2] += 1;
                        let smooth = (original_context / wavelength - low_freq_factor)
                            / (high_freq_factor - low_freq_factor);
                        (1.0 - smooth) * frequency / factor + smooth * frequency
                    }
                })
                .collect();
            assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
            check(&spec, 1.0, |pair| angles[pair]);
        }
    }
}

#[test]
fn yarn_ramps_over_dimensions_and_scales_the_magnitude() {
    let cases = [
        (4.0, 4096.0, 32.0, 1.0, 10_000.0, 128),
        (16.0, 2048.0, 32.0, 1.0, 10_000.0, 64),
        (40.0, 4096.0, 32.0, 1.0, 1_000_000.0, 64),
        (2.0, 512.0, 8.0, 2.0, 500_000.0, 96),
    ];
    for (factor, original_context, beta_fast, beta_slow, base, n_rot) in cases {
        let attention_factor = 0.1 * f64::ln(factor) + 1.0;
        let mut spec = RopeSpec::new(n_rot, base);
        spec.scaling = RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            attention_factor,
        };
        // The dimension at which a number of rotations fits into the original context, solved
        // for from rotations = context * base^(-2 i / n) / (2 pi).
        let dimension = |rotations: f64| {
            n_rot as f64 / 2.0 * (original_context / (2.0 * PI * rotations)).log(base)
        };
        let low = dimension(beta_fast).floor().max(0.0);
        let high = dimension(beta_slow).ceil().min(n_rot as f64 - 1.0);
        assert!(low < high, "{low} {high}");
        check(&spec, attention_factor, |pair| {
            let frequency = plain(&spec, pair);
            let pair = pair as f64;
            let kept = if pair <= low {
                1.0
            } else if pair >= high {
                0.0
            } else {
                1.0 - (pair - low) / (high - low)
            };
            frequency / factor * (1.0 - kept) + frequency * kept
        });
    }
}
