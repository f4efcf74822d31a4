//! Turns each pair `(a, b)` of a head: `(a cos - b sin, a sin + b cos)`.

use kovar_core::ops::{Pairing, Rope};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn rope(attributes: &Rope, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (x, table) = (inputs.get(0)?, inputs.get(1)?);
    let (head_dim, heads, tokens) = (x.from_end(0), x.from_end(1), x.from_end(2));
    let pairs = table.from_end(1);
    let angles = table.values()?;
    let mut out = x.values()?.to_vec();
    for (i, head) in out.chunks_exact_mut(head_dim.max(1)).enumerate() {
        let token = i / heads % tokens;
        for pair in 0..pairs {
            let (first, second) = match attributes.pairing {
                Pairing::Normal => (2 * pair, 2 * pair + 1),
                Pairing::Neox => (pair, pair + pairs),
            };
            let at = (token * pairs + pair) * 2;
            let (cos, sin) = (angles[at], angles[at + 1]);
            let (a, b) = (head[first], head[second]);
            head[first] = a * cos - b * sin;
            head[second] = a * sin + b * cos;
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
