//! `destination[ids[i], ..] = x[i, ..]`, rounded to the destination's dtype if it is another one;
//! rows whose index is outside the destination are skipped.

use super::{Inputs, OracleError, Output};
use crate::tensor::TensorData;

pub(super) fn set_rows(inputs: &Inputs<'_>) -> Result<Output, OracleError> {
    let (x, ids) = (inputs.get(0)?, inputs.get(1)?);
    let dims = inputs.output_dims();
    let rows = dims.first().copied().unwrap_or(1);
    let row: usize = dims.iter().skip(1).product();
    let mut sources = vec![None; rows];
    for (i, &id) in ids.indices()?.iter().enumerate() {
        if let Some(id) = usize::try_from(id).ok().filter(|&id| id < rows) {
            sources[id] = Some(i);
        }
    }
    let from = |index: &[usize]| {
        let mut index = index.to_vec();
        index[0] = sources[index[0]]?;
        Some((0, index))
    };
    let moved = TensorData::gathered(dims, &[x], 0.0, from)?;
    let (dtype, same) = (inputs.output.dtype, inputs.dtype(0) == inputs.output.dtype);
    let written = (0..rows * row).map(|at| sources[at / row].is_some());
    Ok(Output {
        data: if same {
            moved
        } else {
            moved.rounded_to(dtype)?
        },
        written: Some(written.collect()),
        updates: Vec::new(),
    })
}
