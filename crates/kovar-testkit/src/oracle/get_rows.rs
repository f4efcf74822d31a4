//! `y[i.., :] = table[ids[i..], :]`; zeros for an index outside the table.

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn get_rows(inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (table, ids) = (inputs.get(0)?, inputs.get(1)?);
    let (rows, dims) = (table.from_end(1), ids.dims());
    let list = ids.indices()?;
    let from = |index: &[usize]| {
        let (&column, outer) = index.split_last()?;
        let at = outer
            .iter()
            .zip(dims)
            .fold(0, |at, (i, size)| at * size + i);
        let id = usize::try_from(list[at]).ok().filter(|&id| id < rows)?;
        Some((0, vec![id, column]))
    };
    Ok(TensorData::gathered(
        inputs.output_dims(),
        &[table],
        0.0,
        from,
    )?)
}
