//! `y = softmax(cap(scale * q k^T) + mask) v`, one query and head at a time.

use kovar_core::ops::Attention;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn attention(
    attributes: &Attention,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let (q, k, v) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
    let (batch, tokens) = (q.from_end(3), q.from_end(2));
    let (heads, head_dim) = (q.from_end(1), q.from_end(0));
    let (rows, kv_heads, value_dim) = (k.from_end(2), k.from_end(1), v.from_end(0));
    let (queries, keys, values) = (q.values()?, k.values()?, v.values()?);
    let positions = inputs.optional(attributes.positions_operand())?;
    let positions = positions.map(TensorData::indices).transpose()?;
    let mask = inputs.optional(attributes.mask_operand())?;
    let mask = mask.map(|mask| mask.broadcast(&[batch, heads, tokens, rows]));
    let mask = mask.transpose()?;
    let sinks = inputs.optional(attributes.sinks_operand())?;
    let sinks = sinks.map(TensorData::values).transpose()?;
    let valid_rows = match attributes.kv_len {
        Some(scalar) => inputs.scalar(scalar.index())?,
        None => rows as i64,
    };

    let mut out = Vec::new();
    for b in 0..batch {
        for token in 0..tokens {
            for head in 0..heads {
                let position = positions.map(|positions| positions[token]);
                let sees = |row: usize| {
                    let row = row as i64;
                    let in_reach = position.is_none_or(|p| {
                        let window = attributes.window.map(i64::from);
                        p >= 0
                            && (!attributes.causal || row <= p)
                            && window.is_none_or(|window| row > p - window)
                    });
                    row < valid_rows && in_reach
                };
                let kv_head = head / (heads / kv_heads);
                let query =
                    &queries[((b * tokens + token) * heads + head) * head_dim..][..head_dim];
                let mut seen = Vec::new();
                for row in (0..rows).filter(|&row| sees(row)) {
                    let at = (b * rows + row) * kv_heads + kv_head;
                    let key = &keys[at * head_dim..][..head_dim];
                    let product: f64 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                    let mut score = f64::from(attributes.scale) * product;
                    if let Some(cap) = attributes.soft_cap.map(f64::from) {
                        score = cap * (score / cap).tanh();
                    }
                    if let Some(mask) = &mask {
                        score += mask[((b * heads + head) * tokens + token) * rows + row];
                    }
                    if score > f64::NEG_INFINITY {
                        seen.push((score, &values[at * value_dim..][..value_dim]));
                    }
                }
                let sink = sinks.map(|sinks| sinks[head]);
                out.extend(weighted_mean(&seen, sink, value_dim));
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}

/// `sum exp(score) value / (sum exp(score) + exp(sink))`; zeros of nothing.
fn weighted_mean(seen: &[(f64, &[f64])], sink: Option<f64>, value_dim: usize) -> Vec<f64> {
    let scores = seen.iter().map(|&(score, _)| score).chain(sink);
    let largest = scores.fold(f64::NEG_INFINITY, f64::max);
    let mut total = sink.map_or(0.0, |sink| (sink - largest).exp());
    let mut mean = vec![0.0; value_dim];
    for &(score, value) in seen {
        let weight = (score - largest).exp();
        total += weight;
        for (mean, value) in mean.iter_mut().zip(value) {
            *mean += weight * value;
        }
    }
    if !seen.is_empty() {
        mean.iter_mut().for_each(|mean| *mean /= total);
    }
    mean
}
