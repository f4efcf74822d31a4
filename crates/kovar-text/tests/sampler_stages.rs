//! Each stage of the sampler against its definition in plain f64 code, over random distributions.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{data, repository};
use kovar_formats::Gguf;
use kovar_text::sampler::{DEFAULT_BREAKERS, Mirostat, breaker_tokens, text_bias};
use kovar_text::{Sampler, SamplerParams, Tokenizer, TokenizerSpec};
use proptest::prelude::*;

/// All stages off except the draw.
fn plain() -> SamplerParams {
    SamplerParams {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        seed: Some(11),
        ..SamplerParams::default()
    }
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Ids by descending probability.
fn ranked(p: &[f64]) -> Vec<usize> {
    let mut ids: Vec<usize> = (0..p.len()).collect();
    ids.sort_by(|&a, &b| p[b].total_cmp(&p[a]).then(a.cmp(&b)));
    ids
}

fn counts(params: &SamplerParams, logits: &[f32], draws: usize) -> Vec<usize> {
    let mut sampler = Sampler::new(params).unwrap();
    let mut counts = vec![0; logits.len()];
    for _ in 0..draws {
        counts[sampler.sample(&mut logits.to_vec()).unwrap() as usize] += 1;
    }
    counts
}

/// Asserts that draws follow `expected`, which adds up to 1: impossible tokens are never drawn, and
/// Pearson's statistic is far below that of a wrong distribution.
fn assert_follows(counts: &[usize], expected: &[f64]) {
    let draws = counts.iter().sum::<usize>() as f64;
    let (mut statistic, mut degrees) = (0.0, -1.0);
    for (&count, &p) in counts.iter().zip(expected) {
        if p == 0.0 {
            assert_eq!(count, 0, "{counts:?} {expected:?}");
        } else if p * draws >= 5.0 {
            statistic += (count as f64 - p * draws).powi(2) / (p * draws);
            degrees += 1.0;
        }
    }
    let limit = degrees + 6.0 * (2.0f64 * degrees).sqrt() + 24.0;
    assert!(
        statistic < limit,
        "{statistic} over {limit}: {counts:?} {expected:?}"
    );
}

/// `p` restricted to `kept`, adding up to 1.
fn restricted(p: &[f64], kept: &BTreeSet<usize>) -> Vec<f64> {
    let total: f64 = kept.iter().map(|&id| p[id]).sum();
    let p = p.iter().enumerate();
    p.map(|(id, p)| if kept.contains(&id) { p / total } else { 0.0 })
        .collect()
}

fn distribution() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-4.0f32..4.0, 2..12)
}

const DRAWS: usize = 3000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn typical_keeps_the_tokens_of_the_most_expected_surprise(
        logits in distribution(), typical_p in 0.05f32..0.99,
    ) {
        let p = softmax(&logits);
        let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
        let mut ids: Vec<usize> = (0..p.len()).collect();
        ids.sort_by(|&a, &b| {
            let deviation = |id: usize| (-p[id].ln() - entropy).abs();
            deviation(a).total_cmp(&deviation(b))
        });
        let mut kept = BTreeSet::new();
        let mut sum = 0.0;
        for id in ids {
            kept.insert(id);
            sum += p[id];
            if sum >= f64::from(typical_p) {
                break;
            }
        }
        let params = SamplerParams { typical_p, ..plain() };
        assert_follows(&counts(&params, &logits, DRAWS), &restricted(&p, &kept));
    }

    #[test]
    fn top_n_sigma_keeps_logits_within_n_deviations_of_the_greatest(
        logits in distribution(), top_n_sigma in 0.1f32..3.0,
    ) {
        let n = logits.len() as f64;
        let mean = logits.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let variance = logits.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
        let greatest = logits.iter().copied().fold(f32::MIN, f32::max);
        let least = f64::from(greatest) - f64::from(top_n_sigma) * variance.sqrt();
        let kept = (0..logits.len()).filter(|&id| f64::from(logits[id]) >= least).collect();
        let params = SamplerParams { top_n_sigma, ..plain() };
        assert_follows(&counts(&params, &logits, DRAWS), &restricted(&softmax(&logits), &kept));
    }

    #[test]
    fn xtc_drops_the_likely_tokens_but_the_last_with_its_probability(
        logits in distribution(),
        xtc_probability in 0.0f32..=1.0,
        xtc_threshold in 0.01f32..0.6,
    ) {
        let p = softmax(&logits);
        let ranked = ranked(&p);
        let likely = p.iter().filter(|&&p| p >= f64::from(xtc_threshold)).count();
        let dropped = match xtc_threshold > 0.5 {
            true => 0,
            false => likely.saturating_sub(1),
        };
        let kept = ranked[dropped..].iter().copied().collect();
        let without = restricted(&p, &kept);
        let q = f64::from(xtc_probability);
        let expected: Vec<f64> = p.iter().zip(&without).map(|(p, w)| (1.0 - q) * p + q * w).collect();
        let params = SamplerParams { xtc_probability, xtc_threshold, ..plain() };
        assert_follows(&counts(&params, &logits, DRAWS), &expected);
    }

    #[test]
    fn mirostat_keeps_tokens_within_its_bound_and_corrects_it_by_the_error(
        logits in prop::collection::vec(-6.0f32..6.0, 2..150),
        version in prop_oneof![Just(Mirostat::V1), Just(Mirostat::V2)],
        mirostat_tau in 0.5f32..6.0,
        mirostat_eta in 0.01f32..0.5,
        temperature in 0.5f32..2.0,
        seed in any::<u64>(),
    ) {
        let params = SamplerParams {
            mirostat: version, mirostat_tau, mirostat_eta, temperature, seed: Some(seed),
            // Ignored.
            top_k: 1,
            ..plain()
        };
        let mut sampler = Sampler::new(&params).unwrap();
        let scaled: Vec<f32> = logits.iter().map(|logit| logit / temperature).collect();
        let p = softmax(&scaled);
        let ranked = ranked(&p);
        let (tau, eta) = (f64::from(mirostat_tau), f64::from(mirostat_eta));
        let mut mu = 2.0 * tau;
        for _ in 0..20 {
            let count = match version {
                Mirostat::V1 => zipf_count(&p, &ranked, mu),
                _ => p.iter().filter(|&&p| -p.log2() <= mu).count().max(1),
            };
            let kept: BTreeSet<usize> = ranked[..count.min(ranked.len())].iter().copied().collect();
            let expected = restricted(&p, &kept);
            let drawn = sampler.sample(&mut logits.clone()).unwrap() as usize;
            prop_assert!(kept.contains(&drawn));
            mu -= eta * (-expected[drawn].log2() - tau);
        }
        let again = sampler.sample(&mut logits.clone());
        sampler.reset();
        let first = sampler.sample(&mut logits.clone()).unwrap();
        let mut other = Sampler::new(&params).unwrap();
        prop_assert_eq!(first, other.sample(&mut logits.clone()).unwrap());
        prop_assert!(again.is_ok());
    }

    #[test]
    fn dry_penalises_tokens_that_continue_the_longest_repetition_most(
        text in prop::collection::vec(0u32..4, 0..40),
        dry_multiplier in 0.1f32..2.0,
        dry_base in 1.0f32..3.0,
        dry_allowed_length in 0usize..4,
        dry_penalty_last_n in 1usize..50,
        breakers in prop::collection::vec(prop::collection::vec(0u32..4, 1..3), 0..2),
    ) {
        let params = SamplerParams {
            dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n,
            dry_sequence_breakers: breakers.clone(),
            ..plain()
        };
        let mut sampler = Sampler::new(&params).unwrap();
        text.iter().for_each(|&token| sampler.accept(token));
        let mut logits = [0.5f32, -1.0, 2.0, 0.0, 1.0];
        let before = logits;
        sampler.sample(&mut logits).unwrap();

        let window = &text[text.len() - dry_penalty_last_n.min(text.len())..];
        let repeated = repeated(window, dry_allowed_length, &breakers);
        for (token, (after, before)) in logits.iter().zip(before).enumerate() {
            let taken = repeated.get(&(token as u32)).map_or(0.0, |&matched| {
                let power = (matched - dry_allowed_length) as i32;
                f64::from(dry_multiplier) * f64::from(dry_base).powi(power)
            });
            let expected = f64::from(before) - taken;
            prop_assert!(
                (f64::from(*after) - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                "token {}: {} {}", token, after, expected
            );
        }
    }
}

/// The number of tokens that Mirostat 1 keeps: the paper's estimate from the hundred most likely
/// tokens.
fn zipf_count(p: &[f64], ranked: &[usize], mu: f64) -> usize {
    let (mut products, mut squares) = (0.0, 0.0);
    for i in 0..ranked.len().min(100) - 1 {
        let t = ((i + 2) as f64 / (i + 1) as f64).ln();
        products += t * (p[ranked[i]] / p[ranked[i + 1]]).ln();
        squares += t * t;
    }
    let s = products / squares;
    let epsilon = s - 1.0;
    let n = p.len() as f64;
    let k = (epsilon * mu.exp2() / (1.0 - n.powf(-epsilon))).powf(1.0 / s);
    (k as usize).max(1)
}

/// By token, the length of the longest sequence without a breaker that both ends `window` and
/// precedes an earlier occurrence of the token.
fn repeated(window: &[u32], allowed: usize, breakers: &[Vec<u32>]) -> BTreeMap<u32, usize> {
    // Breakers are searched from the end; the first that begins at a position counts, the longest
    // of several.
    let starts = (0..window.len()).rev().find_map(|at| {
        let here = breakers.iter().filter(|b| window[at..].starts_with(b));
        here.map(|b| at + b.len()).max()
    });
    let limit = window.len() - starts.unwrap_or(0);
    let mut longest = BTreeMap::new();
    if limit < allowed {
        return longest;
    }
    for at in 1..window.len() {
        let same = (1..=at).take_while(|&n| window[at - n] == window[window.len() - n]);
        let matched = same.count().min(limit);
        let is_breaker = breakers.iter().any(|b| b[..] == [window[at]]);
        if matched >= allowed && !is_breaker {
            let best = longest.entry(window[at]).or_insert(0);
            *best = matched.max(*best);
        }
    }
    longest
}

#[test]
fn mirostat_keeps_the_surprise_near_its_target() {
    // Zipf's law over 2000 tokens: a surprise of 7.9 bits if no token is dropped.
    let logits: Vec<f32> = (1..=2000).map(|rank| -(rank as f32).ln()).collect();
    for mirostat in [Mirostat::V1, Mirostat::V2] {
        for mirostat_tau in [2.0, 4.0, 6.0] {
            let params = SamplerParams {
                mirostat,
                mirostat_tau,
                ..plain()
            };
            let mut sampler = Sampler::new(&params).unwrap();
            let mut drawn = vec![0; logits.len()];
            for _ in 0..4000 {
                drawn[sampler.sample(&mut logits.clone()).unwrap() as usize] += 1;
            }
            // The bound and the number of kept tokens converge. They vary a little, so the surprise
            // over all tokens that were ever kept is only near the target.
            let kept = 1 + drawn.iter().rposition(|&count| count > 0).unwrap();
            assert!(kept < logits.len(), "{mirostat:?} {mirostat_tau}: {kept}");
            let p = softmax(&logits[..kept]);
            let surprise: f64 = drawn
                .iter()
                .zip(&p)
                .map(|(&count, p)| -p.log2() * count as f64 / 4000.0)
                .sum();
            assert!(
                (surprise - f64::from(mirostat_tau)).abs() < 0.8,
                "{mirostat:?} {mirostat_tau}: {surprise}"
            );
        }
    }
}

#[test]
fn biases_add_ban_and_force() {
    let logits = [1.0, 2.0, f32::NEG_INFINITY, 0.0];
    let bias = |logit_bias: &[(u32, f32)]| {
        let params = SamplerParams {
            logit_bias: logit_bias.to_vec(),
            ..plain()
        };
        let mut changed = logits;
        let mut sampler = Sampler::new(&params).unwrap();
        sampler.sample(&mut changed).map(|token| (token, changed))
    };
    let (_, changed) = bias(&[(0, 1.5), (3, -2.0), (9, 4.0)]).unwrap();
    assert_eq!(changed, [2.5, 2.0, f32::NEG_INFINITY, -2.0]);
    let infinity = f32::INFINITY;
    assert_eq!(bias(&[(0, infinity), (2, infinity)]).unwrap().0, 0);
    assert_eq!(bias(&[(0, -infinity), (1, -infinity)]).unwrap().0, 3);
    assert!(bias(&[(0, -infinity), (1, -infinity), (3, -infinity)]).is_err());
}

#[test]
fn stages_that_are_off_change_no_draw() {
    let logits: Vec<f32> = (0..50).map(|id| ((id * 37) % 50) as f32 / 10.0).collect();
    let off = SamplerParams {
        top_n_sigma: 0.0,
        typical_p: 1.0,
        xtc_probability: 1.0,
        xtc_threshold: 0.6,
        dry_multiplier: 0.0,
        ..plain()
    };
    assert_eq!(counts(&off, &logits, 500), counts(&plain(), &logits, 500));
}

fn story_tokenizer() -> Tokenizer {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let spec = TokenizerSpec::from_gguf(&Gguf::open(path).unwrap()).unwrap();
    Tokenizer::from_spec(spec).unwrap()
}

#[test]
fn breakers_are_the_tokens_that_contain_or_begin_them() {
    let tokenizer = story_tokenizer();
    let sequences = breaker_tokens(&tokenizer, DEFAULT_BREAKERS).unwrap();
    for id in 0..tokenizer.vocab_len() as u32 {
        let bytes = tokenizer.token_bytes(id).unwrap();
        let holds = bytes.iter().any(|byte| b"\n:\"*".contains(byte));
        assert_eq!(sequences.contains(&vec![id]), holds, "{id}");
    }
    let id = |text: &str| tokenizer.id_of(text).unwrap();
    let sequences = breaker_tokens(&tokenizer, &["xq"]).unwrap();
    assert!(sequences.contains(&vec![id("x"), id("q")]), "{sequences:?}");
    assert!(sequences.iter().all(|sequence| sequence.len() == 2));
    assert!(breaker_tokens(&tokenizer, &[""]).unwrap().is_empty());
}

#[test]
fn the_bias_of_a_text_is_that_of_its_tokens() {
    let spec = TokenizerSpec::from_gguf(&Gguf::open(data("tok-bpe.gguf")).unwrap()).unwrap();
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    let end = tokenizer.id_of("<|im_end|>").unwrap();
    assert_eq!(
        text_bias(&tokenizer, "<|im_end|><|im_end|>", -2.0).unwrap(),
        [(end, -2.0)]
    );
}
