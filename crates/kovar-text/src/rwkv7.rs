//! RWKV-7 "Goose" (Peng et al. 2025, arXiv:2503.14456; `x070` in the reference implementation): a
//! recurrent network. Its state is one matrix `[values, keys]` per head. Every token decays the
//! state, removes from it and adds to it. The cost per token does not depend on the length of the
//! text.

use kovar_core::error::GraphError;
use kovar_core::ops::{Binary, BinaryKind, GroupNorm, L2Norm, Op, Scale, Unary, UnaryKind};
use kovar_core::{DType, Graph, ScalarId, ValueId};
use kovar_formats::ModelFile;

use crate::architecture::{
    Architecture, ArchitectureError, CacheShape, Memory, StepGraph, StepShape, StepTokens,
    TensorRule, Weights, state,
};
use crate::chunks::micro_batches;
use crate::decoder::add_in_place;
use crate::hyperparameters::Hyperparameters;

/// The name in `general.architecture`.
pub(crate) const NAME: &str = "rwkv7";

/// The logarithm of the least decay, `-exp(-0.5)`.
const LOG_MIN_DECAY: f32 = -0.606_530_66;
/// The epsilon of the norm over each head's result: 1e-5 times the square of 8.
const HEAD_NORM_EPS: f32 = 64e-5;
/// The smallest length by which a removal key is normalised.
const KEY_NORM_EPS: f32 = 1e-12;
/// The inputs that are mixed with the previous token: receptance, decay, key, value, in-context
/// rate and gate.
const MIXES: usize = 6;

/// The hyperparameters of an RWKV-7 model.
#[derive(Clone, Debug)]
pub(crate) struct Rwkv7 {
    vocab_len: usize,
    context: usize,
    n_layers: usize,
    /// Elements of a token's hidden state: all heads.
    width: usize,
    ffn_width: usize,
    n_heads: usize,
    head_dim: usize,
    ranks: Ranks,
    eps: f32,
}

/// Ranks of the low-rank products `w2 f(w1 x)`.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    decay: usize,
    /// For the in-context learning rate.
    rate: usize,
    /// For the share of the first block's value.
    value: usize,
    gate: usize,
}

impl Rwkv7 {
    /// Reads the hyperparameters from the metadata of `file`.
    pub(crate) fn read(file: &ModelFile) -> Result<Self, ArchitectureError> {
        let params = Hyperparameters::new(file, NAME);
        let width = params.size("embedding_length")?;
        let head_dim = params.size("wkv.head_size")?;
        if !width.is_multiple_of(head_dim) {
            let rule = "it must divide `embedding_length`";
            return Err(params.wrong("wkv.head_size", head_dim, rule));
        }
        let shifts = params.size_or("token_shift_count", 2)?;
        if shifts != 2 {
            let rule = "blocks of this architecture shift 2 times";
            return Err(params.wrong("token_shift_count", shifts, rule));
        }
        Ok(Self {
            vocab_len: params.vocab_len("token_embd.weight")?,
            context: params.context()?,
            n_layers: params.layers()?,
            width,
            ffn_width: params.size("feed_forward_length")?,
            n_heads: width / head_dim,
            head_dim,
            ranks: Ranks {
                decay: params.size("attention.decay_lora_rank")?,
                rate: params.size("attention.iclr_lora_rank")?,
                value: params.size("attention.value_residual_mix_lora_rank")?,
                gate: params.size("attention.gate_lora_rank")?,
            },
            eps: params.epsilon("attention.layer_norm_epsilon")?,
        })
    }
}

impl Architecture for Rwkv7 {
    fn tensors(&self) -> Vec<TensorRule> {
        let (width, ffn, ranks) = (self.width, self.ffn_width, self.ranks);
        let mut rules = vec![
            TensorRule::matrix("token_embd.weight", self.vocab_len, width),
            TensorRule::matrix("output.weight", self.vocab_len, width).optional(),
        ];
        let norm = |name: String| {
            [
                TensorRule::vector(format!("{name}.weight"), width),
                TensorRule::vector(format!("{name}.bias"), width),
            ]
        };
        rules.extend(norm("token_embd_norm".to_owned()));
        rules.extend(norm("output_norm".to_owned()));
        for layer in 0..self.n_layers {
            let name = |tensor: &str| format!("blk.{layer}.{tensor}");
            let weight = |tensor: &str| name(&format!("{tensor}.weight"));
            rules.extend(norm(name("attn_norm")));
            rules.extend(norm(name("attn_norm_2")));
            rules.extend(norm(name("time_mix_ln")));
            let lerp = weight("time_mix_lerp_fused");
            rules.push(TensorRule::floats(lerp, &[MIXES, 1, 1, width]));
            for vector in [
                "time_mix_w0",
                "time_mix_a0",
                "time_mix_k_k",
                "time_mix_k_a",
                "time_mix_r_k",
                "channel_mix_lerp_k",
            ] {
                rules.push(TensorRule::vector(weight(vector), width));
            }
            for (part, rank) in [("w", ranks.decay), ("a", ranks.rate), ("g", ranks.gate)] {
                let weight = |i| weight(&format!("time_mix_{part}{i}"));
                rules.push(TensorRule::matrix(weight(1), rank, width));
                rules.push(TensorRule::matrix(weight(2), width, rank));
            }
            // The first block does not use these tensors. llama.cpp requires them, so files for it
            // repeat the tensors of the rate.
            let (rank, unused) = match layer {
                0 => (ranks.rate, true),
                _ => (ranks.value, false),
            };
            rules.extend(
                [
                    TensorRule::vector(weight("time_mix_v0"), width),
                    TensorRule::matrix(weight("time_mix_v1"), rank, width),
                    TensorRule::matrix(weight("time_mix_v2"), width, rank),
                ]
                .map(|rule| if unused { rule.optional() } else { rule }),
            );
            for square in ["receptance", "key", "value", "output"] {
                let name = weight(&format!("time_mix_{square}"));
                rules.push(TensorRule::matrix(name, width, width));
            }
            rules.push(TensorRule::matrix(weight("channel_mix_key"), ffn, width));
            rules.push(TensorRule::matrix(weight("channel_mix_value"), width, ffn));
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
        Memory::States
    }

    fn step(
        &self,
        weights: &Weights<'_>,
        shape: StepShape,
        _caches: CacheShape,
    ) -> Result<StepGraph, GraphError> {
        let mut graph = Graph::new();
        let g = &mut graph;
        let n_tokens = shape.n_tokens;
        let ids = g.input("ids", DType::I32, &[n_tokens])?;
        let embeddings = weights.require(g, "token_embd.weight")?;

        let micro_batches = micro_batches(n_tokens);
        let mut tokens = Vec::with_capacity(micro_batches.len());
        for (i, micro_batch) in micro_batches.iter().enumerate() {
            let most = i32::try_from(micro_batch.len()).unwrap_or(i32::MAX);
            let n_valid = g.scalar(&format!("n_valid.{i}"), most)?;
            let ids = g.slice(ids, 0, micro_batch.clone())?;
            let x = g.get_rows(embeddings, ids)?;
            let x = self.norm(g, weights, "token_embd_norm", x)?;
            tokens.push((micro_batch.len(), n_valid, x, None));
        }
        let mut layer_starts = Vec::with_capacity(self.n_layers * micro_batches.len());
        for index in 0..self.n_layers {
            for (n_tokens, n_valid, x, first_value) in &mut tokens {
                layer_starts.push(g.next_node());
                let block = Block {
                    model: self,
                    weights,
                    index,
                    n_tokens: *n_tokens,
                    n_valid: *n_valid,
                };
                let normed = block.norm(g, "attn_norm", *x)?;
                let mixed = block.time_mix(g, normed, first_value)?;
                *x = add_in_place(g, mixed, *x)?;
                let normed = block.norm(g, "attn_norm_2", *x)?;
                let mixed = block.channel_mix(g, normed)?;
                *x = add_in_place(g, mixed, *x)?;
            }
        }
        let x = tokens.last().map_or(embeddings, |&(_, _, x, _)| x);
        let outputs = weights.outputs(g, shape, x, embeddings, |g, x| {
            self.norm(g, weights, "output_norm", x)
        })?;
        Ok(StepGraph {
            graph,
            micro_batches,
            layer_starts,
            ids,
            tokens: StepTokens::Count,
            outputs,
        })
    }
}

impl Rwkv7 {
    /// A layer norm over the last dimension.
    fn norm(
        &self,
        g: &mut Graph,
        weights: &Weights<'_>,
        name: &str,
        x: ValueId,
    ) -> Result<ValueId, GraphError> {
        let weight = weights.require(g, &format!("{name}.weight"))?;
        let bias = weights.require(g, &format!("{name}.bias"))?;
        g.layer_norm(x, weight, Some(bias), self.eps)
    }
}

/// One block of a micro-batch. Hidden states are `[tokens, width]`.
struct Block<'a> {
    model: &'a Rwkv7,
    weights: &'a Weights<'a>,
    index: usize,
    n_tokens: usize,
    n_valid: ScalarId,
}

impl Block<'_> {
    /// Mixes tokens over time. Each head updates its state by the decay `w`, the removal key `kk`,
    /// the rate `a`, the key `k` and the value `v`, and then reads it with the receptance `r`.
    fn time_mix(
        &self,
        g: &mut Graph,
        x: ValueId,
        first_value: &mut Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let [x_r, x_w, x_k, x_v, x_a, x_g] = self.lerps(g, x)?;

        let r = self.linear(g, "time_mix_receptance", x_r)?;
        let k = self.linear(g, "time_mix_key", x_k)?;
        let v = self.value(g, x_v, first_value)?;
        let w = self.decay(g, x_w)?;
        let a = self.low_rank(g, "a", x_a, None)?;
        let a = self.biased_sigmoid(g, a, "time_mix_a0")?;
        let gate = self.linear(g, "time_mix_g1", x_g)?;
        let gate = unary_in_place(g, UnaryKind::Sigmoid, gate)?;
        let gate = self.linear(g, "time_mix_g2", gate)?;

        let k_k = self.weight(g, "time_mix_k_k")?;
        let kk = g.mul(k, k_k)?;
        let kk = self.heads(g, kk)?;
        let kk = g.apply_in_place(Op::from(L2Norm { eps: KEY_NORM_EPS }), &[kk])?;

        // k (1 + (a - 1) k_a)
        let k_a = self.weight(g, "time_mix_k_a")?;
        let k_a = g.mul(k, k_a)?;
        let replaced = g.mul(k_a, a)?;
        let replaced = binary_in_place(g, BinaryKind::Sub, replaced, k_a)?;
        let k = add_in_place(g, k, replaced)?;

        let [r, w, k, v, a] = self.all_heads(g, [r, w, k, v, a])?;
        let added = g.mul(kk, a)?;
        let removed = unary_in_place(g, UnaryKind::Neg, kk)?;
        let (heads, dim) = (self.model.n_heads, self.model.head_dim);
        let state = state(g, &self.name("wkv"), DType::F32, &[heads, dim, dim])?;
        let y = g.wkv7([r, w, k, v, removed, added], state, Some(self.n_valid))?;
        let y = self.head_norm(g, y)?;

        // The contribution of the token itself, independent of the state: (sum r k r_k) v.
        let r_k = self.weight(g, "time_mix_r_k")?;
        let r_k = g.reshape(r_k, &[heads, dim])?;
        let bonus = binary_in_place(g, BinaryKind::Mul, k, r)?;
        let bonus = binary_in_place(g, BinaryKind::Mul, bonus, r_k)?;
        let bonus = g.sum(bonus)?;
        let bonus = g.mul(v, bonus)?;
        let y = add_in_place(g, y, bonus)?;
        let y = g.reshape(y, &[self.n_tokens, self.model.width])?;
        let y = binary_in_place(g, BinaryKind::Mul, y, gate)?;
        self.linear(g, "time_mix_output", y)
    }

    /// Mixes the channels of a token: a feed-forward network with squared ReLU.
    fn channel_mix(&self, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
        let difference = self.difference(g, "channel_mix_shift", x)?;
        let lerp = self.weight(g, "channel_mix_lerp_k")?;
        let x_k = binary_in_place(g, BinaryKind::Mul, difference, lerp)?;
        let x_k = add_in_place(g, x_k, x)?;
        let k = self.linear(g, "channel_mix_key", x_k)?;
        let k = unary_in_place(g, UnaryKind::ReluSqr, k)?;
        self.linear(g, "channel_mix_value", k)
    }

    /// The previous token minus the token itself.
    fn difference(&self, g: &mut Graph, name: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let state = state(g, &self.name(name), DType::F32, &[self.model.width])?;
        let before = g.token_shift(x, state, Some(self.n_valid))?;
        binary_in_place(g, BinaryKind::Sub, before, x)
    }

    /// Six interpolations between each token and the previous one: `x + difference mu`.
    fn lerps(&self, g: &mut Graph, x: ValueId) -> Result<[ValueId; MIXES], GraphError> {
        let (n_tokens, width) = (self.n_tokens, self.model.width);
        let difference = self.difference(g, "time_mix_shift", x)?;
        let difference = g.broadcast_to(difference, &[MIXES, n_tokens, width])?;
        let mu = self.weight(g, "time_mix_lerp_fused")?;
        let mu = g.reshape(mu, &[MIXES, 1, width])?;
        let mixed = g.mul(difference, mu)?;
        let mixed = add_in_place(g, mixed, x)?;
        let mut lerps = [mixed; MIXES];
        for (i, lerp) in lerps.iter_mut().enumerate() {
            let part = g.slice(mixed, 0, i..i + 1)?;
            *lerp = g.reshape(part, &[n_tokens, width])?;
        }
        Ok(lerps)
    }

    /// The decay: `exp(-exp(-0.5) sigmoid(w0 + w2 tanh(w1 x)))`.
    fn decay(&self, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
        let w = self.low_rank(g, "w", x, Some(UnaryKind::Tanh))?;
        let w = self.biased_sigmoid(g, w, "time_mix_w0")?;
        let scale = LOG_MIN_DECAY;
        let w = g.apply_in_place(Op::from(Scale { scale }), &[w])?;
        unary_in_place(g, UnaryKind::Exp, w)
    }

    /// The value. All blocks but the first move it towards the first block's value: `v + (first -
    /// v) sigmoid(v0 + v2 v1 x)`.
    fn value(
        &self,
        g: &mut Graph,
        x: ValueId,
        first_value: &mut Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let v = self.linear(g, "time_mix_value", x)?;
        let Some(first) = *first_value else {
            *first_value = Some(v);
            return Ok(v);
        };
        let share = self.low_rank(g, "v", x, None)?;
        let share = self.biased_sigmoid(g, share, "time_mix_v0")?;
        let drawn = g.sub(first, v)?;
        let drawn = binary_in_place(g, BinaryKind::Mul, drawn, share)?;
        add_in_place(g, drawn, v)
    }

    /// Normalises the results of each head, `[tokens, heads, dim]`.
    fn head_norm(&self, g: &mut Graph, y: ValueId) -> Result<ValueId, GraphError> {
        let weight = self.weight(g, "time_mix_ln")?;
        let bias = self.weights.require(g, &self.name("time_mix_ln.bias"))?;
        let y = g.reshape(y, &[self.n_tokens, self.model.width])?;
        let norm = GroupNorm {
            groups: self.model.n_heads,
            eps: HEAD_NORM_EPS,
        };
        let y = g.apply_in_place(Op::from(norm), &[y, weight, bias])?;
        self.heads(g, y)
    }

    /// The low-rank product `w2 f(w1 x)` with the matrices `time_mix_<part>1` and
    /// `time_mix_<part>2`.
    fn low_rank(
        &self,
        g: &mut Graph,
        part: &str,
        x: ValueId,
        f: Option<UnaryKind>,
    ) -> Result<ValueId, GraphError> {
        let mut inner = self.linear(g, &format!("time_mix_{part}1"), x)?;
        if let Some(kind) = f {
            inner = unary_in_place(g, kind, inner)?;
        }
        self.linear(g, &format!("time_mix_{part}2"), inner)
    }

    /// `sigmoid(bias + x)`, in place of `x`.
    fn biased_sigmoid(&self, g: &mut Graph, x: ValueId, bias: &str) -> Result<ValueId, GraphError> {
        let bias = self.weight(g, bias)?;
        let x = add_in_place(g, x, bias)?;
        unary_in_place(g, UnaryKind::Sigmoid, x)
    }

    fn all_heads<const N: usize>(
        &self,
        g: &mut Graph,
        mut values: [ValueId; N],
    ) -> Result<[ValueId; N], GraphError> {
        for value in &mut values {
            *value = self.heads(g, *value)?;
        }
        Ok(values)
    }

    /// A hidden state split into heads: `[tokens, heads, dim]`.
    fn heads(&self, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
        let model = self.model;
        g.reshape(x, &[self.n_tokens, model.n_heads, model.head_dim])
    }

    fn norm(&self, g: &mut Graph, tensor: &str, x: ValueId) -> Result<ValueId, GraphError> {
        self.model.norm(g, self.weights, &self.name(tensor), x)
    }

    fn linear(&self, g: &mut Graph, tensor: &str, x: ValueId) -> Result<ValueId, GraphError> {
        let weight = self.weight(g, tensor)?;
        g.matmul(weight, x)
    }

    /// A weight of this block. Leading dims of 1 of a vector are dropped.
    fn weight(&self, g: &mut Graph, tensor: &str) -> Result<ValueId, GraphError> {
        let name = self.name(&format!("{tensor}.weight"));
        let weight = self.weights.require(g, &name)?;
        let dims = *g.value(weight)?.dims();
        let n = dims.from_end(0);
        if dims.rank() > 1 && dims.elements() == Some(n) {
            g.reshape(weight, &[n])
        } else {
            Ok(weight)
        }
    }

    fn name(&self, tensor: &str) -> String {
        format!("blk.{}.{tensor}", self.index)
    }
}

/// `f(x)`, in place of `x`.
fn unary_in_place(g: &mut Graph, kind: UnaryKind, x: ValueId) -> Result<ValueId, GraphError> {
    g.apply_in_place(Op::from(Unary { kind }), &[x])
}

/// `a op b`, in place of `a`.
fn binary_in_place(
    g: &mut Graph,
    kind: BinaryKind,
    a: ValueId,
    b: ValueId,
) -> Result<ValueId, GraphError> {
    g.apply_in_place(Op::from(Binary { kind }), &[a, b])
}
