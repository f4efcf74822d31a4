//! Llama (Touvron et al. 2023; Dubey et al. 2024): pre-normalised decoder blocks of grouped-query
//! attention with rotary positions and a SwiGLU feed-forward network, from GGUF files of the
//! `llama` architecture.

use kovar_core::error::GraphError;
use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Pairing, RopeSpec};
use kovar_core::{DType, Graph, ScalarId, ValueId};
use kovar_formats::Gguf;

use crate::architecture::{
    Architecture, ArchitectureError, StepGraph, StepOutputs, StepShape, TensorRule, Weights,
};
use crate::hyper::Hyper;

/// The name in `general.architecture`.
pub const NAME: &str = "llama";

/// The hyper-parameters of a Llama model.
#[derive(Clone, Debug)]
pub struct Llama {
    vocab_len: usize,
    context: usize,
    n_layers: usize,
    /// Elements of a token's hidden state.
    width: usize,
    ffn_width: usize,
    n_heads: usize,
    n_kv_heads: usize,
    key_dim: usize,
    value_dim: usize,
    /// Rows that a query sees, its own the last; all of them without it (Mistral has one).
    window: Option<u32>,
    eps: f32,
    rope: RopeSpec,
}

impl Llama {
    /// Reads the hyper-parameters from the metadata of `file`.
    ///
    /// # Errors
    /// Metadata that is missing, of a wrong kind, or that makes no model.
    pub fn from_gguf(file: &Gguf) -> Result<Self, ArchitectureError> {
        let hyper = Hyper::new(file, NAME);
        hyper.refuse("expert_count", "mixture of experts")?;
        let width = hyper.size("embedding_length")?;
        let n_heads = hyper.size("attention.head_count")?;
        let n_kv_heads = hyper.size_or("attention.head_count_kv", n_heads)?;
        if n_kv_heads > n_heads || !n_heads.is_multiple_of(n_kv_heads) {
            return Err(hyper.wrong(
                "attention.head_count_kv",
                n_kv_heads,
                "it must divide the number of heads",
            ));
        }
        let key_dim = hyper.size_or("attention.key_length", width / n_heads)?;
        let n_rot = hyper.size_or("rope.dimension_count", key_dim)?;
        if n_rot > key_dim || !n_rot.is_multiple_of(2) {
            let rule = "it must be even and not exceed the size of a head";
            return Err(hyper.wrong("rope.dimension_count", n_rot, rule));
        }
        Ok(Self {
            vocab_len: hyper.vocab_len("token_embd.weight")?,
            context: hyper.size("context_length")?,
            n_layers: hyper.size("block_count")?,
            width,
            ffn_width: hyper.size("feed_forward_length")?,
            n_heads,
            n_kv_heads,
            key_dim,
            value_dim: hyper.size_or("attention.value_length", key_dim)?,
            window: hyper.window("attention.sliding_window")?,
            eps: hyper.epsilon("attention.layer_norm_rms_epsilon")?,
            rope: RopeSpec {
                n_rot,
                base: hyper.rope_base()?,
                scaling: hyper.rope_scaling()?,
                freq_factors: hyper.rope_factors("rope_freqs.weight", n_rot / 2)?,
            },
        })
    }
}

impl Architecture for Llama {
    fn tensors(&self) -> Vec<TensorRule> {
        let (width, ffn) = (self.width, self.ffn_width);
        let queries = self.n_heads * self.key_dim;
        let keys = self.n_kv_heads * self.key_dim;
        let values = self.n_kv_heads * self.value_dim;
        let mixed = self.n_heads * self.value_dim;
        let mut rules = vec![
            TensorRule::matrix("token_embd.weight", self.vocab_len, width),
            TensorRule::vector("output_norm.weight", width),
            TensorRule::matrix("output.weight", self.vocab_len, width).optional(),
            TensorRule::vector("rope_freqs.weight", self.rope.n_rot / 2).optional(),
        ];
        for layer in 0..self.n_layers {
            let name = |tensor: &str| format!("blk.{layer}.{tensor}");
            rules.extend([
                TensorRule::vector(name("attn_norm.weight"), width),
                TensorRule::matrix(name("attn_q.weight"), queries, width),
                TensorRule::matrix(name("attn_k.weight"), keys, width),
                TensorRule::matrix(name("attn_v.weight"), values, width),
                TensorRule::matrix(name("attn_output.weight"), width, mixed),
                TensorRule::vector(name("attn_q.bias"), queries).optional(),
                TensorRule::vector(name("attn_k.bias"), keys).optional(),
                TensorRule::vector(name("attn_v.bias"), values).optional(),
                TensorRule::vector(name("attn_output.bias"), width).optional(),
                TensorRule::vector(name("ffn_norm.weight"), width),
                TensorRule::matrix(name("ffn_gate.weight"), ffn, width),
                TensorRule::matrix(name("ffn_up.weight"), ffn, width),
                TensorRule::matrix(name("ffn_down.weight"), width, ffn),
            ]);
        }
        rules
    }

    fn vocab_len(&self) -> usize {
        self.vocab_len
    }

    fn trained_context(&self) -> usize {
        self.context
    }

    fn rope(&self) -> &RopeSpec {
        &self.rope
    }

    fn step(
        &self,
        weights: &Weights<'_>,
        shape: StepShape,
        context: usize,
        cache_dtype: DType,
    ) -> Result<StepGraph, GraphError> {
        let n = shape.n_tokens;
        let mut graph = Graph::new();
        let g = &mut graph;
        let ids = g.input("ids", DType::I32, &[n])?;
        let positions = g.input("positions", DType::I32, &[n])?;
        let rope_table = g.input("rope_table", DType::F32, &[n, self.rope.n_rot / 2, 2])?;
        let kv_len = g.scalar("kv_len", i32::try_from(context).unwrap_or(i32::MAX))?;
        let embeddings = weights.require(g, "token_embd.weight")?;

        let mut x = g.get_rows(embeddings, ids)?;
        for layer in 0..self.n_layers {
            let block = Block {
                model: self,
                weights,
                layer,
                positions,
                rope_table,
                kv_len,
            };
            let attended = block.attention(g, x, context, cache_dtype)?;
            x = add_in_place(g, attended, x)?;
            let fed = block.feed_forward(g, x)?;
            x = add_in_place(g, fed, x)?;
        }

        let outputs = if shape.n_outputs > 0 {
            let rows = g.input("rows", DType::I32, &[shape.n_outputs])?;
            let x = g.get_rows(x, rows)?;
            let norm = weights.require(g, "output_norm.weight")?;
            let x = g.rms_norm(x, norm, self.eps)?;
            let head = weights.get(g, "output.weight")?.unwrap_or(embeddings);
            let logits = g.matmul(head, x)?;
            g.set_output(logits, "logits")?;
            Some(StepOutputs { rows, logits })
        } else {
            None
        };
        Ok(StepGraph {
            graph,
            ids,
            positions,
            rope_table,
            kv_len,
            outputs,
        })
    }
}

/// One decoder block of a step.
struct Block<'a> {
    model: &'a Llama,
    weights: &'a Weights<'a>,
    layer: usize,
    positions: ValueId,
    rope_table: ValueId,
    kv_len: ScalarId,
}

impl Block<'_> {
    fn attention(
        &self,
        g: &mut Graph,
        x: ValueId,
        context: usize,
        cache_dtype: DType,
    ) -> Result<ValueId, GraphError> {
        let model = self.model;
        let x = self.norm(g, "attn_norm", x)?;
        let q = self.heads(g, "attn_q", x, model.n_heads, model.key_dim)?;
        let k = self.heads(g, "attn_k", x, model.n_kv_heads, model.key_dim)?;
        let v = self.heads(g, "attn_v", x, model.n_kv_heads, model.value_dim)?;
        g.rope_in_place(q, self.rope_table, Pairing::Normal)?;
        g.rope_in_place(k, self.rope_table, Pairing::Normal)?;

        let k = self.cache(g, "k", k, context, cache_dtype)?;
        let v = self.cache(g, "v", v, context, cache_dtype)?;
        let attention = Attention {
            causal: true,
            window: model.window,
            kv_len: Some(self.kv_len),
            ..Attention::new(1.0 / (model.key_dim as f32).sqrt())
        };
        let q = batch_of_one(g, q)?;
        let mixed = g.attention(attention, q, k, v, &[self.positions])?;
        let n_tokens = g.value(mixed)?.dims().from_end(2);
        let mixed = g.reshape(mixed, &[n_tokens, model.n_heads * model.value_dim])?;
        self.linear(g, "attn_output", mixed)
    }

    fn feed_forward(&self, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
        let x = self.norm(g, "ffn_norm", x)?;
        let gate = self.linear(g, "ffn_gate", x)?;
        let up = self.linear(g, "ffn_up", x)?;
        let gated = g.swiglu(gate, up)?;
        self.linear(g, "ffn_down", gated)
    }

    fn name(&self, tensor: &str, part: &str) -> String {
        format!("blk.{}.{tensor}.{part}", self.layer)
    }

    fn norm(&self, g: &mut Graph, tensor: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let weight = self.weights.require(g, &self.name(tensor, "weight"))?;
        g.rms_norm(x, weight, self.model.eps)
    }

    /// `x w^T`, plus a bias if the file has one.
    fn linear(&self, g: &mut Graph, tensor: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let weight = self.weights.require(g, &self.name(tensor, "weight"))?;
        let y = g.matmul(weight, x)?;
        match self.weights.get(g, &self.name(tensor, "bias"))? {
            Some(bias) => add_in_place(g, y, bias),
            None => Ok(y),
        }
    }

    /// A linear layer whose result is cut into heads: `[tokens, heads, dim]`.
    fn heads(
        &self,
        g: &mut Graph,
        tensor: &str,
        x: ValueId,
        heads: usize,
        dim: usize,
    ) -> Result<ValueId, GraphError> {
        let y = self.linear(g, tensor, x)?;
        let n_tokens = g.value(y)?.dims().from_end(1);
        g.reshape(y, &[n_tokens, heads, dim])
    }

    /// Writes `x`, `[tokens, heads, dim]`, into this block's cache and gives the whole cache,
    /// `[1, context, heads, dim]`.
    fn cache(
        &self,
        g: &mut Graph,
        part: &str,
        x: ValueId,
        context: usize,
        dtype: DType,
    ) -> Result<ValueId, GraphError> {
        let dims = *g.value(x)?.dims();
        let (heads, dim) = (dims.from_end(1), dims.from_end(0));
        let cache = g.state(&self.name("cache", part), dtype, &[context, heads, dim])?;
        g.set_rows(cache, x, self.positions)?;
        batch_of_one(g, cache)
    }
}

fn batch_of_one(g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let dims = *g.value(x)?.dims();
    let dims: Vec<usize> = std::iter::once(1).chain(dims.iter().copied()).collect();
    g.reshape(x, &dims)
}

/// `a + b`, over `a`.
fn add_in_place(g: &mut Graph, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
    let kind = BinaryKind::Add;
    g.apply_in_place(Op::from(Binary { kind }), &[a, b])
}
