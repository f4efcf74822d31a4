//! Qwen2 (Yang et al. 2024): Llama's blocks with biases on queries, keys and values.

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
pub const NAME: &str = "qwen2";

/// The hyper-parameters of a Qwen2 model.
#[derive(Clone, Debug)]
pub struct Qwen2(Decoder);

impl Qwen2 {
    /// Reads the hyper-parameters from the metadata of `file`.
    ///
    /// # Errors
    /// Metadata that is missing, of a wrong kind, or that makes no model.
    pub fn read(file: &ModelFile) -> Result<Self, ArchitectureError> {
        Ok(Self(Decoder::read(&Hyper::new(file, NAME))?))
    }
}

impl Architecture for Qwen2 {
    fn tensors(&self) -> Vec<TensorRule> {
        let decoder = &self.0;
        let queries = decoder.n_heads * decoder.key_dim;
        let keys = decoder.n_kv_heads * decoder.key_dim;
        let values = decoder.n_kv_heads * decoder.value_dim;
        let mut rules = decoder.tensors();
        for layer in 0..decoder.n_layers {
            let name = |tensor: &str| format!("blk.{layer}.{tensor}");
            rules.extend([
                TensorRule::vector(name("attn_q.bias"), queries),
                TensorRule::vector(name("attn_k.bias"), keys),
                TensorRule::vector(name("attn_v.bias"), values),
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
    let q = layer.rope(g, q, Pairing::Neox)?;
    let k = layer.rope(g, k, Pairing::Neox)?;
    layer.attend(g, q, k, v)
}
