//! Scaled dot-product attention, fused.

use super::dtypes::{CACHES, FLOATS, INDICES, MASKS};
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass, Precision};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ScalarId, Value, ValueId};

/// `y = softmax(cap(scale * q k^T) + mask) v`, one softmax for each query and head (Vaswani et al.
/// 2017), computed without the score matrix (Dao et al. 2022).
///
/// - `q`: F32, F16 or BF16, `[batch, tokens, heads, head_dim]`.
/// - `k`: F32, F16, BF16 or Q8_0, `[batch, rows, kv_heads, head_dim]`; `heads` is a multiple of
///   `kv_heads` and consecutive heads share one (grouped heads, Ainslie et al. 2023).
/// - `v`: like `k`, `[batch, rows, kv_heads, value_dim]`.
/// - `positions` (with `causal` or `window`): I32 `[tokens]`, the row of each query's own key. A
///   negative position marks a padding token, whose result is zeros.
/// - `mask` (with `mask`): F32 or F16, broadcasts to `[batch, heads, tokens, rows]`; added to the
///   capped scores. Minus infinity excludes a row.
/// - `sinks` (with `sinks`): F32 `[heads]`, a score that joins each softmax but has no value.
/// - result: F32, `[batch, tokens, heads, value_dim]`.
///
/// A query at position `p` sees the rows `j < kv_len`, with `j <= p` if `causal`, and
/// `j > p - window` if there is a window. A query that sees no row gives zeros. Rows that no
/// query sees are never read, so their contents do not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// The factor on the scores, usually `1 / sqrt(head_dim)`; finite.
    pub scale: f32,
    /// Whether queries see only rows up to their own position.
    pub causal: bool,
    /// The number of rows that a query sees, up to and including its own; 1 or more.
    pub window: Option<u32>,
    /// `cap(s) = soft_cap * tanh(s / soft_cap)`; positive (Gemma Team 2024).
    pub soft_cap: Option<f32>,
    /// Whether there is a mask.
    pub mask: bool,
    /// Whether there are sinks (Xiao et al. 2023, as trained scores).
    pub sinks: bool,
    /// The number of valid rows; `None` if all are.
    pub kv_len: Option<ScalarId>,
    /// How exactly.
    pub precision: Precision,
}

const SINKS: &[DType] = &[DType::F32];

impl Attention {
    /// Bidirectional attention over all rows, without options.
    pub fn new(scale: f32) -> Self {
        Self {
            scale,
            causal: false,
            window: None,
            soft_cap: None,
            mask: false,
            sinks: false,
            kv_len: None,
            precision: Precision::Default,
        }
    }

    /// The operand index of the positions, if there are any.
    pub fn positions_operand(&self) -> Option<usize> {
        (self.causal || self.window.is_some()).then_some(3)
    }

    /// The operand index of the mask, if there is one.
    pub fn mask_operand(&self) -> Option<usize> {
        let positions = usize::from(self.positions_operand().is_some());
        self.mask.then_some(3 + positions)
    }

    /// The operand index of the sinks, if there are any.
    pub fn sinks_operand(&self) -> Option<usize> {
        let positions = usize::from(self.positions_operand().is_some());
        self.sinks.then_some(3 + positions + usize::from(self.mask))
    }
}

impl Rules for Attention {
    fn signature(&self) -> Signature {
        let names: &[_] = match (self.positions_operand().is_some(), self.mask) {
            (true, true) => &["q", "k", "v", "positions", "mask", "sinks"],
            (true, false) => &["q", "k", "v", "positions", "sinks"],
            (false, true) => &["q", "k", "v", "mask", "sinks"],
            (false, false) => &["q", "k", "v", "sinks"],
        };
        let optional = [
            self.positions_operand(),
            self.mask_operand(),
            self.sinks_operand(),
        ];
        let n = 3 + optional.iter().flatten().count();
        Signature::new("attention", names)
            .arity(n..=n)
            .classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        const FORM: &str = "[batch, tokens or rows, heads, head_dim]";
        let q = operands.typed(0, FLOATS)?.dims();
        let k = operands.typed(1, CACHES)?.dims();
        let v = operands.typed(2, CACHES)?.dims();
        for (i, dims) in [q, k, v].into_iter().enumerate() {
            operands.rank(i, dims.rank() == 4, FORM)?;
        }
        operands.dims(1, 0, k[0] == q[0], "the batch sizes must agree")?;
        operands.dims(1, 0, k[3] == q[3], "head_dim must agree")?;
        let grouped = k[2] != 0 && q[2].is_multiple_of(k[2]);
        operands.dims(
            1,
            0,
            grouped,
            "the heads of q must be a multiple of those of k",
        )?;
        operands.dims(2, 1, v[..3] == k[..3], "all dims but the last must agree")?;
        if let Some(i) = self.positions_operand() {
            let positions = operands.typed(i, INDICES)?.dims();
            operands.rank(i, positions.rank() == 1, "[tokens]")?;
            operands.dims(i, 0, positions[0] == q[1], "one position for each token")?;
        }
        if let Some(i) = self.mask_operand() {
            let mask = operands.typed(i, MASKS)?;
            let scores = Dims::from_fn(4, |i| [q[0], q[2], q[1], k[1]][i]);
            let fits = mask.layout.broadcast_to(scores).is_some();
            operands.rank(
                i,
                fits,
                "dims that broadcast to [batch, heads, tokens, rows]",
            )?;
        }
        if let Some(i) = self.sinks_operand() {
            let sinks = operands.typed(i, SINKS)?.dims();
            operands.rank(i, sinks.rank() == 1, "[heads]")?;
            operands.dims(i, 0, sinks[0] == q[2], "one sink for each head")?;
        }
        operands.finite("scale", self.scale)?;
        if let Some(window) = self.window {
            operands.attribute(window > 0, "window", window.into(), "1 or more")?;
        }
        if let Some(cap) = self.soft_cap {
            let valid = cap.is_finite() && cap > 0.0;
            operands.attribute(valid, "soft_cap", cap.into(), "finite and positive")?;
        }
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: q.with_last(v[3]),
        })
    }

    fn scalar(&self) -> Option<ScalarId> {
        self.kv_len
    }

    fn valid_rows(&self, i: usize) -> Option<(usize, ScalarId)> {
        let rows = self.kv_len?;
        matches!(i, 1 | 2).then_some((1, rows))
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        let (Some(q), Some(k)) = (inputs.first(), inputs.get(1)) else {
            return 0;
        };
        let each = count(q).saturating_add(count(output)).saturating_mul(2);
        each.saturating_mul(k.dims().from_end(2) as u64)
    }
}

impl Graph {
    /// Appends [`Attention`]; `rest` holds the positions, the mask and the sinks, in this order;
    /// each is there if the attributes ask for it.
    pub fn attention(
        &mut self,
        attributes: Attention,
        q: ValueId,
        k: ValueId,
        v: ValueId,
        rest: &[ValueId],
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [q, k, v].into_iter().chain(rest.iter().copied()).collect();
        self.apply(Op::from(attributes), &inputs)
    }
}
