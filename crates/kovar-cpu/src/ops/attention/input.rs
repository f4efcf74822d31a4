//! The operands of an attention: the keys that a query sees, and their rows as f32.

use kovar_core::error::DeviceError;
use kovar_core::ops::Attention;
use kovar_core::{DType, Dims, NodeRef, ScalarId};

use super::BLOCK;
use crate::ops::malformed;
use crate::ops::rows::{IndexedRows, Vector, broadcast};
use crate::program::{Address, Operand, Resolver, Run};
use crate::vector::{self, Kernels};

/// A block of rows of keys or values in f32. Rows are `row` elements apart, and the elements of a
/// row `column` elements.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) start: *const f32,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// The keys that a query sees: from the first to the one after the last.
pub(super) type Range = std::ops::Range<usize>;

/// The operands and attributes of an attention.
pub(super) struct Input {
    /// By batch, token and head, as `y`.
    pub(super) q: IndexedRows<3>,
    /// By batch, row and head, as `v`.
    k: IndexedRows<3>,
    v: IndexedRows<3>,
    pub(super) y: IndexedRows<3>,
    /// The first position, and bytes from one to the next.
    positions: Option<(Address, usize)>,
    /// Repeated to all batches and heads: by batch, head and token.
    mask: Option<IndexedRows<3>>,
    sinks: Option<Vector>,
    pub(super) batch: usize,
    pub(super) tokens: usize,
    pub(super) kv_heads: usize,
    /// Heads that share a head of keys.
    pub(super) group: usize,
    pub(super) rows: usize,
    pub(super) head_dim: usize,
    pub(super) value_dim: usize,
    pub(super) scale: f32,
    /// 0 for none.
    pub(super) cap: f32,
    causal: bool,
    window: Option<u32>,
    kv_len: Option<ScalarId>,
}

/// The buffer of a block of rows that cannot be used in place.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) buffer: *mut f32,
    /// Elements from one row to the next.
    pub(super) pitch: usize,
    /// Whether rows can be used in place with gaps between elements and without padding at the end.
    pub(super) strided: bool,
}

/// Keys or values.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Keys,
    Values,
}

impl Input {
    pub(super) fn new(
        resolver: &Resolver<'_>,
        node: NodeRef<'_>,
        op: &Attention,
    ) -> Result<Self, DeviceError> {
        let (q, k, v) = (
            resolver.input(node, 0)?,
            resolver.input(node, 1)?,
            resolver.input(node, 2)?,
        );
        let y = resolver.write(node)?;
        let (q_dims, k_dims, v_dims) = (*q.layout.dims(), *k.layout.dims(), *v.layout.dims());
        let optional = |i: Option<usize>| i.map(|i| resolver.input(node, i)).transpose();
        let vector = |operand: Operand<'_>| {
            let stride = operand.bytes(operand.layout.stride_from_end(0));
            (operand.start(), stride)
        };
        let indexed = |operand: &Operand<'_>, name: &'static str| {
            IndexedRows::new(operand).ok_or_else(|| malformed(resolver, node, name))
        };
        let heads = q_dims.from_end(1);
        let scores = [
            q_dims.from_end(3),
            heads,
            q_dims.from_end(2),
            k_dims.from_end(2),
        ];
        let mask = optional(op.mask_operand())?
            .map(|mask| {
                Dims::new(&scores)
                    .and_then(|dims| IndexedRows::new(&broadcast(&mask, &dims)?))
                    .ok_or_else(|| malformed(resolver, node, "mask"))
            })
            .transpose()?;
        Ok(Self {
            q: indexed(&q, "q")?,
            k: indexed(&k, "k")?,
            v: indexed(&v, "v")?,
            y: indexed(&y, "q")?,
            positions: optional(op.positions_operand())?.map(vector),
            mask,
            sinks: optional(op.sinks_operand())?.map(|sinks| Vector::of(&sinks)),
            batch: q_dims.from_end(3),
            tokens: q_dims.from_end(2),
            kv_heads: k_dims.from_end(1),
            group: heads.checked_div(k_dims.from_end(1)).unwrap_or(0),
            rows: k_dims.from_end(2),
            head_dim: q_dims.from_end(0),
            value_dim: v_dims.from_end(0),
            scale: op.scale,
            cap: op.soft_cap.unwrap_or(0.0),
            causal: op.causal,
            window: op.window,
            kv_len: op.kv_len,
        })
    }

    pub(super) fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// The number of valid rows.
    pub(super) fn valid_rows(&self, run: &Run<'_>) -> usize {
        let scalar = self.kv_len.and_then(|id| run.scalars.get(id.index()));
        let len = scalar.map(|&len| usize::try_from(len).unwrap_or(0));
        len.map_or(self.rows, |len| len.min(self.rows))
    }

    /// The keys that a token sees.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the token exists.
    pub(super) unsafe fn visible(&self, token: usize, valid_rows: usize) -> Range {
        let Some((start, stride)) = self.positions else {
            return 0..valid_rows;
        };
        let at = start.get().wrapping_add(token * stride).cast::<i32>();
        // SAFETY: by this function's contract.
        let Ok(position) = usize::try_from(unsafe { at.read_unaligned() }) else {
            return 0..0;
        };
        let end = if self.causal {
            valid_rows.min(position + 1)
        } else {
            valid_rows
        };
        let first = self.window.map_or(0, |window| {
            (position + 1).saturating_sub(usize::try_from(window).unwrap_or(usize::MAX))
        });
        first.min(end)..end
    }

    /// The sink of a head; minus infinity if there are none.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the head exists.
    pub(super) unsafe fn sink(&self, kernels: &Kernels, head: usize) -> f32 {
        // SAFETY: by this function's contract.
        let sink = |sinks: Vector| unsafe { sinks.element(kernels, head) };
        self.sinks.map_or(f32::NEG_INFINITY, sink)
    }

    /// The mask of `n` keys from `first` on for one query (batch, head and token), in place or in
    /// `buffer`; null if there is no mask.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the query and the keys exist, and `buffer`
    /// has room for them.
    pub(super) unsafe fn mask(
        &self,
        kernels: &Kernels,
        query: [usize; 3],
        first: usize,
        n: usize,
        buffer: *mut f32,
    ) -> *const f32 {
        let Some(mask) = &self.mask else {
            return std::ptr::null();
        };
        let from = mask.form.at(mask.row(query), first);
        // SAFETY: by this function's contract.
        unsafe { mask.form.read(kernels, from, n, buffer) }
    }

    /// Rows of a head of keys or values from `first` on as f32, as many as `seen` has keys: in
    /// place if they are f32, else in the buffer of `place`, padded with zeros. Rows that no query
    /// sees are zero and are not read.
    ///
    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run); the rows exist, and the buffer has room
    /// for them.
    pub(super) unsafe fn block(
        &self,
        kernels: &Kernels,
        side: Side,
        [batch, kv_head]: [usize; 2],
        first: usize,
        seen: &Seen,
        place: Place,
    ) -> Rows {
        let Place {
            buffer,
            pitch,
            strided,
        } = place;
        let (heads, dim) = match side {
            Side::Keys => (&self.k, self.head_dim),
            Side::Values => (&self.v, self.value_dim),
        };
        let start = heads.row([batch, first, kv_head]);
        let in_place = seen.all
            && heads.form.dtype() == DType::F32
            && start.cast::<f32>().is_aligned()
            && (strided || (heads.form.is_plain() && pitch == dim));
        if in_place {
            return Rows {
                start: start.cast::<f32>(),
                row: heads.strides[1] / size_of::<f32>(),
                column: heads.form.stride(),
            };
        }
        let mut row = 0;
        while row < seen.keys {
            let alike = |&j: &usize| seen.rows[j] == seen.rows[row];
            let n_rows = (row..seen.keys).take_while(alike).count();
            let to = buffer.wrapping_add(row * pitch);
            // SAFETY: by this function's contract.
            unsafe {
                if seen.rows[row] {
                    let rows = vector::Rows {
                        rows: n_rows,
                        n: dim,
                        src: heads.row([batch, first + row, kv_head]),
                        stride: heads.strides[1],
                        dst: to,
                        pitch,
                    };
                    heads.form.read_rows(kernels, &rows);
                    if pitch > dim {
                        for j in 0..n_rows {
                            std::ptr::write_bytes(to.add(j * pitch + dim), 0, pitch - dim);
                        }
                    }
                } else {
                    std::ptr::write_bytes(to, 0, n_rows * pitch);
                }
            }
            row += n_rows;
        }
        Rows {
            start: buffer,
            row: pitch,
            column: 1,
        }
    }
}

/// Which keys of a block some query sees.
pub(super) struct Seen {
    /// Keys of the block.
    pub(super) keys: usize,
    /// Whether some query sees each of them.
    pub(super) all: bool,
    pub(super) any: bool,
    pub(super) rows: [bool; BLOCK],
}

impl Seen {
    /// From the ranges that the queries see, for `keys` keys from `first` on.
    pub(super) fn new(ranges: impl Iterator<Item = Range>, first: usize, keys: usize) -> Self {
        let mut changes = [0i32; BLOCK + 1];
        for range in ranges {
            let clip = |at: usize| at.saturating_sub(first).min(keys);
            changes[clip(range.start)] += 1;
            changes[clip(range.end)] -= 1;
        }
        let mut rows = [false; BLOCK];
        let mut depth = 0;
        for (row, change) in rows.iter_mut().zip(changes) {
            depth += change;
            *row = depth > 0;
        }
        Self::from_rows(rows, keys)
    }

    /// From whether some query sees each key.
    pub(super) fn from_rows(rows: [bool; BLOCK], keys: usize) -> Self {
        let seen = &rows[..keys.min(BLOCK)];
        Self {
            keys,
            all: seen.iter().all(|&seen| seen),
            any: seen.iter().any(|&seen| seen),
            rows,
        }
    }
}

/// From the first key that some query sees to the last.
pub(super) fn union(ranges: impl Iterator<Item = Range>) -> Range {
    ranges
        .filter(|range| range.start < range.end)
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0)
}

/// The factor on a query's weighted values after all keys: one over the sum of the exponentials,
/// including that of the sink; 0 if the query sees no key.
pub(super) fn final_factor(max: f32, sum: f32, sink: f32) -> f32 {
    if sum == 0.0 {
        return 0.0;
    }
    let greatest = if sink > max { sink } else { max };
    let shrink = (max - greatest).exp();
    shrink / (sum * shrink + (sink - greatest).exp())
}
