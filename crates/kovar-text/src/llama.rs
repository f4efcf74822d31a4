//! Llama (Touvron et al. 2023; Dubey et al. 2024): pre-normalised decoder blocks of grouped-query
//! attention with rotary positions and a SwiGLU feed-forward network, from GGUF files of the
//! `llama` architecture (whose projections are reordered so that neighbours turn together).

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
pub const NAME: &str = "llama";

/// The hyper-parameters of a Llama model.
#[derive(Clone, Debug)]
pub struct Llama(Decoder);

impl Llama {
    /// Reads the hyper-parameters from the metadata of `file`.
    ///
    /// # Errors
    /// Metadata that is missing, of a wrong kind, or that makes no model.
    pub fn read(file: &ModelFile) -> Result<Self, ArchitectureError> {
        Ok(Self(Decoder::read(&Hyper::new(file, NAME))?))
    }
}

impl Architecture for Llama {
    fn tensors(&self) -> Vec<TensorRule> {
        let decoder = &self.0;
        let queries = decoder.n_heads * decoder.key_dim;
        let keys = decoder.n_kv_heads * decoder.key_dim;
        let values = decoder.n_kv_heads * decoder.value_dim;
        let mut rules = decoder.tensors();
        for layer in 0..decoder.n_layers {
            let name = |tensor: &str| format!("blk.{layer}.{tensor}");
            rules.extend([
                TensorRule::vector(name("attn_q.bias"), queries).optional(),
                TensorRule::vector(name("attn_k.bias"), keys).optional(),
                TensorRule::vector(name("attn_v.bias"), values).optional(),
                TensorRule::vector(name("attn_output.bias"), decoder.width).optional(),
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
    let q = layer.rope(g, q, Pairing::Normal)?;
    let k = layer.rope(g, k, Pairing::Normal)?;
    layer.attend(g, q, k, v)
}
