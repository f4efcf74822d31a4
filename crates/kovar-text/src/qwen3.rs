//! Qwen3 (Yang et al. 2025): Llama's blocks with a norm on each head's query and key.

use kovar_core::error::GraphError;
use kovar_core::ops::{Pairing, RopeSpec};
use kovar_core::{DType, Graph, ValueId};
use kovar_formats::ModelFile;

use crate::architecture::{
    Architecture, ArchitectureError, StepGraph, StepShape, TensorRule, Weights,
};
use crate::decoder::{Decoder, Layer};
use crate::hyper::Hyper;

/// The name in `general.architecture`.
pub const NAME: &str = "qwen3";

/// The hyper-parameters of a Qwen3 model.
#[derive(Clone, Debug)]
pub struct Qwen3(Decoder);

impl Qwen3 {
    /// Reads the hyper-parameters from the metadata of `file`.
    ///
    /// # Errors
    /// Metadata that is missing, of a wrong kind, or that makes no model.
    pub fn read(file: &ModelFile) -> Result<Self, ArchitectureError> {
        Ok(Self(Decoder::read(&Hyper::new(file, NAME))?))
    }
}

impl Architecture for Qwen3 {
    fn tensors(&self) -> Vec<TensorRule> {
        let decoder = &self.0;
        let mut rules = decoder.tensors();
        for layer in 0..decoder.n_layers {
            let name = |tensor: &str| format!("blk.{layer}.{tensor}");
            rules.extend([
                TensorRule::vector(name("attn_q_norm.weight"), decoder.key_dim),
                TensorRule::vector(name("attn_k_norm.weight"), decoder.key_dim),
            ]);
        }
        rules
    }

    fn vocab_len(&self) -> usize {
        self.0.vocab_len
    }

    fn trained_context(&self) -> usize {
        self.0.context
    }

    fn rope(&self) -> &RopeSpec {
        &self.0.rope
    }

    fn step(
        &self,
        weights: &Weights<'_>,
        shape: StepShape,
        context: usize,
        cache_dtype: DType,
    ) -> Result<StepGraph, GraphError> {
        self.0.step(weights, shape, context, cache_dtype, attend)
    }
}

fn attend(layer: &Layer<'_>, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let (q, k, v) = layer.qkv(g, x)?;
    let q = layer.norm(g, "attn_q_norm", q)?;
    let k = layer.norm(g, "attn_k_norm", k)?;
    let q = layer.rope(g, q, Pairing::Neox)?;
    let k = layer.rope(g, k, Pairing::Neox)?;
    layer.attend(g, q, k, v)
}
