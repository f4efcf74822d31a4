//! Indices in the order of the elements, or the first of them.

use std::cmp::Ordering;

use kovar_core::ops::Argsort;
pub(super) use kovar_core::ops::SortOrder;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn argsort(
    attributes: &Argsort,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let n = x.from_end(0);
    let mut out = Vec::new();
    for row in x.values()?.chunks_exact(n.max(1)) {
        out.extend_from_slice(&sorted(row, attributes.order)[..attributes.k.unwrap_or(n)]);
    }
    Ok(TensorData::ints(inputs.output_dims(), out)?)
}

/// The indices of a row's elements in order; of equal elements the lesser index first.
pub(super) fn sorted(row: &[f64], order: SortOrder) -> Vec<i64> {
    let mut indices: Vec<usize> = (0..row.len()).collect();
    indices.sort_by(|&a, &b| {
        let ascending = compare(row[a], row[b]);
        match order {
            SortOrder::Ascending => ascending,
            SortOrder::Descending => ascending.reverse(),
        }
    });
    indices.into_iter().map(|i| i as i64).collect()
}

/// NaN is above every number.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
