//! `destination[ids[i], ..] = x[i, ..]`, rounded to the destination's dtype; rows whose index is
//! outside the destination are skipped.

use super::{Inputs, OracleError, Output};
use crate::tensor::TensorData;

pub(super) fn set_rows(inputs: &Inputs<'_>) -> Result<Output, OracleError> {
    let (x, ids) = (inputs.get(0)?, inputs.get(1)?);
    let dims = inputs.output_dims();
    let rows = dims.first().copied().unwrap_or(1);
    let row: usize = dims.iter().skip(1).product();
    let mut out = vec![0.0; rows * row];
    let mut written = vec![false; rows * row];
    for (i, &id) in ids.indices()?.iter().enumerate() {
        if let Some(id) = usize::try_from(id).ok().filter(|&id| id < rows) {
            let place = id * row..(id + 1) * row;
            out[place.clone()].copy_from_slice(&x.values()?[i * row..(i + 1) * row]);
            written[place].fill(true);
        }
    }
    let data = TensorData::floats(dims, out)?.rounded_to(inputs.output.dtype)?;
    Ok(Output {
        data,
        written: Some(written),
        updates: Vec::new(),
    })
}
