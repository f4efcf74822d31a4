//! `y[b, h, t, slot_r] = sum_c x[b, t, h, slot_c] table[t, i, r, c]` for each pair `i`.

use kovar_core::ops::{Pairing, RopeApply};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn rope_apply(
    attributes: &RopeApply,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let (x, table) = (inputs.get(0)?, inputs.get(1)?);
    let (d, heads, tokens) = (x.from_end(0), x.from_end(1), x.from_end(2));
    let (x, table) = (x.values()?, table.values()?);
    let mut out = vec![0.0; x.len()];
    for (row, head) in x.chunks_exact(d.max(1)).enumerate() {
        let (h, t, b) = (row % heads, row / heads % tokens, row / heads / tokens);
        let y = &mut out[((b * heads + h) * tokens + t) * d..][..d];
        for pair in 0..d / 2 {
            let slots = match attributes.pairing {
                Pairing::Normal => [2 * pair, 2 * pair + 1],
                Pairing::Neox => [pair, pair + d / 2],
            };
            let matrix = &table[(t * (d / 2) + pair) * 4..][..4];
            for r in 0..2 {
                y[slots[r]] = head[slots[0]] * matrix[2 * r] + head[slots[1]] * matrix[2 * r + 1];
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
