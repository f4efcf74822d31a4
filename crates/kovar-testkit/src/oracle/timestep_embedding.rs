//! Sines and cosines of time steps times falling frequencies.

use kovar_core::ops::TimestepEmbedding;

use super::{Inputs, OracleError};
use crate::tensor::{Elements, TensorData};

pub(super) fn timestep_embedding(
    attributes: &TimestepEmbedding,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let times: Vec<f64> = match inputs.get(0)?.elements() {
        Elements::Float(times) => times.clone(),
        Elements::Int(times) => times.iter().map(|&t| t as f64).collect(),
    };
    let half = attributes.dim / 2;
    let steps = half as f64 - f64::from(attributes.downscale_freq_shift);
    let mut out = Vec::new();
    for t in times {
        let angle = |i: usize| {
            let frequency = f64::from(attributes.max_period).powf(-(i as f64) / steps);
            f64::from(attributes.scale) * t * frequency
        };
        let sines = (0..half).map(|i| angle(i).sin());
        let cosines = (0..half).map(|i| angle(i).cos());
        if attributes.flip_sin_to_cos {
            out.extend(cosines.chain(sines));
        } else {
            out.extend(sines.chain(cosines));
        }
        out.extend(std::iter::repeat_n(0.0, attributes.dim % 2));
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
