//! `y[i.., :] = table[ids[i..], :]`; zeros for an index outside the table.

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn get_rows(inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (table, ids) = (inputs.get(0)?, inputs.get(1)?);
    let (rows, n) = (table.from_end(1), table.from_end(0));
    let mut out = Vec::new();
    for &id in ids.indices()? {
        match usize::try_from(id).ok().filter(|&id| id < rows) {
            Some(id) => out.extend_from_slice(&table.values()?[id * n..(id + 1) * n]),
            None => out.extend(std::iter::repeat_n(0.0, n)),
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
