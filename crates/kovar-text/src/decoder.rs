//! The common code of decoder-only transformers: hyperparameters, the step around the blocks, and
//! the layers of a block. Each family defines its attention in its own file.

use kovar_core::error::GraphError;
use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Pairing, RopeSpec};
use kovar_core::{DType, Graph, ScalarId, ValueId};
use kovar_formats::ModelFile;

use crate::architecture::{
    Architecture, ArchitectureError, CacheShape, Memory, StepGraph, StepShape, StepTokens,
    TensorRule, Weights, state,
};
use crate::chunks::micro_batches;
use crate::hyperparameters::Hyperparameters;

/// The differences between families of decoders.
#[derive(Debug)]
pub(crate) struct Family {
    /// The name in `general.architecture`.
    pub(crate) name: &'static str,
    /// The tensors of a block in addition to those that every decoder has. Names are relative to
    /// the block.
    pub(crate) block_tensors: fn(&Decoder) -> Vec<TensorRule>,
    /// The attention of a block: maps its normalised hidden state, `[tokens, width]`, to what is
    /// added to the hidden state.
    pub(crate) attend: fn(&Layer<'_>, &mut Graph, ValueId) -> Result<ValueId, GraphError>,
}

/// The hyperparameters of a pre-norm decoder with grouped-query attention and rotary positions.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    family: &'static Family,
    pub(crate) vocab_len: usize,
    pub(crate) context: usize,
    pub(crate) n_layers: usize,
    /// Elements of a token's hidden state.
    pub(crate) width: usize,
    pub(crate) ffn_width: usize,
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) key_dim: usize,
    pub(crate) value_dim: usize,
    /// The number of rows that a query sees, ending with its own; `None` for all.
    pub(crate) window: Option<u32>,
    pub(crate) eps: f32,
    pub(crate) rope: RopeSpec,
}

impl Decoder {
    /// Reads the hyperparameters from the metadata of `file`.
    pub(crate) fn read(
        file: &ModelFile,
        family: &'static Family,
    ) -> Result<Self, ArchitectureError> {
        let params = Hyperparameters::new(file, family.name);
        params.refuse("expert_count", "mixture of experts")?;
        let width = params.size("embedding_length")?;
        let n_heads = params.size("attention.head_count")?;
        let n_kv_heads = params.size_or("attention.head_count_kv", n_heads)?;
        if n_kv_heads > n_heads || !n_heads.is_multiple_of(n_kv_heads) {
            return Err(params.wrong(
                "attention.head_count_kv",
                n_kv_heads,
                "it must divide the number of heads",
            ));
        }
        let given = params.size_if_given("attention.key_length")?;
        let key_dim = given.unwrap_or(width / n_heads);
        if key_dim == 0 {
            let rule = "it must not exceed `embedding_length`, which the heads divide";
            return Err(params.wrong("attention.head_count", n_heads, rule));
        }
        let n_rot = match (params.size_if_given("rope.dimension_count")?, given) {
            (Some(n_rot), _) if n_rot > key_dim || !n_rot.is_multiple_of(2) => {
                let rule = "it must be even and not exceed the size of a head";
                return Err(params.wrong("rope.dimension_count", n_rot, rule));
            }
            (Some(n_rot), _) => n_rot,
            (None, _) if key_dim.is_multiple_of(2) => key_dim,
            (None, Some(_)) => {
                let rule = "it must be even where `rope.dimension_count` is not given";
                return Err(params.wrong("attention.key_length", key_dim, rule));
            }
            (None, None) => {
                let rule = "`embedding_length` divided by it, the size of a head, must be even";
                return Err(params.wrong("attention.head_count", n_heads, rule));
            }
        };
        Ok(Self {
            family,
            vocab_len: params.vocab_len("token_embd.weight")?,
            context: params.context()?,
            n_layers: params.layers()?,
            width,
            ffn_width: params.size("feed_forward_length")?,
            n_heads,
            n_kv_heads,
            key_dim,
            value_dim: params.size_or("attention.value_length", key_dim)?,
            window: params.window("attention.sliding_window")?,
            eps: params.epsilon("attention.layer_norm_rms_epsilon")?,
            rope: RopeSpec {
                n_rot,
                base: params.rope_base()?,
                scaling: params.rope_scaling()?,
                freq_factors: params.rope_factors("rope_freqs.weight", n_rot / 2)?,
            },
        })
    }

    /// Elements of a token's queries, keys and values in all heads.
    pub(crate) fn qkv_widths(&self) -> [usize; 3] {
        let kv = self.n_kv_heads;
        [
            self.n_heads * self.key_dim,
            kv * self.key_dim,
            kv * self.value_dim,
        ]
    }
}

impl Architecture for Decoder {
    fn tensors(&self) -> Vec<TensorRule> {
        let (width, ffn) = (self.width, self.ffn_width);
        let [queries, keys, values] = self.qkv_widths();
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
                TensorRule::vector(name("ffn_norm.weight"), width),
                TensorRule::matrix(name("ffn_gate.weight"), ffn, width),
                TensorRule::matrix(name("ffn_up.weight"), ffn, width),
                TensorRule::matrix(name("ffn_down.weight"), width, ffn),
            ]);
            let own = (self.family.block_tensors)(self).into_iter();
            rules.extend(own.map(|rule| TensorRule {
                name: name(&rule.name),
                ..rule
            }));
        }
        rules
    }

    fn vocab_len(&self) -> usize {
        self.vocab_len
    }

    fn trained_context(&self) -> usize {
        self.context
    }

    fn memory(&self) -> Memory<'_> {
        Memory::Caches { rope: &self.rope }
    }

    fn step(
        &self,
        weights: &Weights<'_>,
        shape: StepShape,
        caches: CacheShape,
    ) -> Result<StepGraph, GraphError> {
        let n = shape.n_tokens;
        let mut graph = Graph::new();
        let g = &mut graph;
        let ids = g.input("ids", DType::I32, &[n])?;
        let positions = g.input("positions", DType::I32, &[n])?;
        let rope_table = g.input("rope_table", DType::F32, &[n, self.rope.n_rot / 2, 2])?;
        let embeddings = weights.require(g, "token_embd.weight")?;

        let micro_batches = micro_batches(n);
        let mut tokens = Vec::with_capacity(micro_batches.len());
        for (i, micro_batch) in micro_batches.iter().enumerate() {
            let ids = g.slice(ids, 0, micro_batch.clone())?;
            let rows = i32::try_from(caches.rows).unwrap_or(i32::MAX);
            tokens.push(Tokens {
                positions: g.slice(positions, 0, micro_batch.clone())?,
                rope_table: g.slice(rope_table, 0, micro_batch.clone())?,
                kv_len: g.scalar(&format!("kv_len.{i}"), rows)?,
                x: g.get_rows(embeddings, ids)?,
            });
        }
        let mut layer_starts = Vec::with_capacity(self.n_layers * micro_batches.len());
        for index in 0..self.n_layers {
            for tokens in &mut tokens {
                layer_starts.push(g.next_node());
                let layer = Layer {
                    decoder: self,
                    weights,
                    index,
                    tokens: *tokens,
                    caches,
                };
                let normed = layer.norm(g, "attn_norm", tokens.x)?;
                let attended = (self.family.attend)(&layer, g, normed)?;
                let x = add_in_place(g, attended, tokens.x)?;
                let fed = layer.feed_forward(g, x)?;
                tokens.x = add_in_place(g, fed, x)?;
            }
        }

        let x = tokens.last().map_or(embeddings, |last| last.x);
        let outputs = weights.outputs(g, shape, x, embeddings, |g, x| {
            let norm = weights.require(g, "output_norm.weight")?;
            g.rms_norm(x, norm, self.eps)
        })?;
        Ok(StepGraph {
            graph,
            micro_batches,
            layer_starts,
            ids,
            tokens: StepTokens::Positions {
                positions,
                rope_table,
            },
            outputs,
        })
    }
}

/// The inputs and the hidden state of a micro-batch.
#[derive(Clone, Copy)]
struct Tokens {
    positions: ValueId,
    rope_table: ValueId,
    kv_len: ScalarId,
    /// Their hidden state, `[tokens, width]`.
    x: ValueId,
}

/// One decoder block of a micro-batch, to build its layers.
pub(crate) struct Layer<'a> {
    decoder: &'a Decoder,
    weights: &'a Weights<'a>,
    index: usize,
    tokens: Tokens,
    caches: CacheShape,
}

impl Layer<'_> {
    /// Queries, keys and values, `[tokens, heads, dim]`.
    pub(crate) fn qkv(
        &self,
        g: &mut Graph,
        x: ValueId,
    ) -> Result<(ValueId, ValueId, ValueId), GraphError> {
        let decoder = self.decoder;
        let q = self.heads(g, "attn_q", x, decoder.n_heads, decoder.key_dim)?;
        let k = self.heads(g, "attn_k", x, decoder.n_kv_heads, decoder.key_dim)?;
        let v = self.heads(g, "attn_v", x, decoder.n_kv_heads, decoder.value_dim)?;
        Ok((q, k, v))
    }

    /// Rotates queries or keys by their positions, in place.
    pub(crate) fn rope(
        &self,
        g: &mut Graph,
        x: ValueId,
        pairing: Pairing,
    ) -> Result<ValueId, GraphError> {
        g.rope_in_place(x, self.tokens.rope_table, pairing)
    }

    /// Appends keys and values to the cache, computes attention over it, and projects the result.
    pub(crate) fn attend(
        &self,
        g: &mut Graph,
        q: ValueId,
        k: ValueId,
        v: ValueId,
    ) -> Result<ValueId, GraphError> {
        let decoder = self.decoder;
        let k = self.cache(g, "k", k)?;
        let v = self.cache(g, "v", v)?;
        let attention = Attention {
            causal: true,
            window: decoder.window,
            kv_len: Some(self.tokens.kv_len),
            ..Attention::new(1.0 / (decoder.key_dim as f32).sqrt())
        };
        let q = batch_of_one(g, q)?;
        let mixed = g.attention(attention, q, k, v, &[self.tokens.positions])?;
        let n_tokens = g.value(mixed)?.dims().from_end(2);
        let mixed = g.reshape(mixed, &[n_tokens, decoder.n_heads * decoder.value_dim])?;
        self.linear(g, "attn_output", mixed)
    }

    fn feed_forward(&self, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
        let x = self.norm(g, "ffn_norm", x)?;
        let gate = self.linear(g, "ffn_gate", x)?;
        let up = self.linear(g, "ffn_up", x)?;
        let gated = g.swiglu(gate, up)?;
        self.linear(g, "ffn_down", gated)
    }

    fn name(&self, tensor: &str, suffix: &str) -> String {
        format!("blk.{}.{tensor}.{suffix}", self.index)
    }

    /// An RMS norm over the last dimension.
    pub(crate) fn norm(
        &self,
        g: &mut Graph,
        tensor: &str,
        x: ValueId,
    ) -> Result<ValueId, GraphError> {
        let weight = self.weights.require(g, &self.name(tensor, "weight"))?;
        g.rms_norm(x, weight, self.decoder.eps)
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

    /// A linear layer whose result is split into heads: `[tokens, heads, dim]`.
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

    /// Writes `x`, `[tokens, heads, dim]`, into this block's cache and returns the whole cache,
    /// `[1, context, heads, dim]`.
    fn cache(&self, g: &mut Graph, suffix: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let dims = *g.value(x)?.dims();
        let (heads, dim) = (dims.from_end(1), dims.from_end(0));
        let cache = state(
            g,
            &self.name("cache", suffix),
            self.caches.dtype,
            &[self.caches.rows, heads, dim],
        )?;
        g.set_rows(cache, x, self.tokens.positions)?;
        batch_of_one(g, cache)
    }
}

fn batch_of_one(g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let dims = *g.value(x)?.dims();
    let dims: Vec<usize> = std::iter::once(1).chain(dims.iter().copied()).collect();
    g.reshape(x, &dims)
}

/// `a + b`, in place of `a`.
pub(crate) fn add_in_place(g: &mut Graph, a: ValueId, b: ValueId) -> Result<ValueId, GraphError> {
    let kind = BinaryKind::Add;
    g.apply_in_place(Op::from(Binary { kind }), &[a, b])
}
