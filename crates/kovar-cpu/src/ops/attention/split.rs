//! Attention of few queries: elements of a head are the lanes of the vectors, and the keys are
//! split between threads.

use super::input::{self, Input, Place, Range, Seen, Side, final_factor};
use super::{BLOCK, Bump};
use crate::ops::worker_scratch;
use crate::program::Run;
use crate::vector::lanes::MAX_LANES;
use crate::vector::{Beta, Tile};

/// The least keys of an item.
const LEAST_KEYS: usize = 128;

/// The most items per thread that the keys are split into.
const ITEMS_PER_THREAD: usize = 4;

/// With fewer multiplications, waking the other threads takes longer than the work.
const INLINE_WORK: usize = 1 << 16;

/// How the work is divided: an item is a head of keys, all its queries and a range of keys.
pub(super) struct Split {
    /// Queries that share a head of keys.
    queries: usize,
    /// The most ranges that the keys are split into.
    max_splits: usize,
    /// Heads of keys, of all batches.
    heads: usize,
    /// Elements of a key and of a value, padded to whole vectors.
    key_pitch: usize,
    value_pitch: usize,
}

impl Split {
    pub(super) fn new(input: &Input, n_threads: usize, lanes: usize) -> Self {
        let heads = input.batch * input.kv_heads;
        let most = (ITEMS_PER_THREAD * n_threads).div_ceil(heads.max(1));
        Self {
            queries: input.tokens * input.group,
            max_splits: most.min(input.rows.div_ceil(LEAST_KEYS)).max(1),
            heads,
            key_pitch: input.head_dim.next_multiple_of(lanes),
            value_pitch: input.value_dim.next_multiple_of(lanes),
        }
    }

    fn worker_len(&self) -> usize {
        Bump::size(self.queries * self.key_pitch)
            + Bump::size(BLOCK * self.key_pitch)
            + Bump::size(BLOCK * self.value_pitch)
            + Bump::size(self.queries * BLOCK)
            + Bump::size(self.queries * BLOCK)
    }

    /// Elements of an item's result: for each query the weighted values, the greatest score and
    /// the sum of the exponentials.
    fn partial_len(&self) -> usize {
        self.queries * (self.value_pitch + MAX_LANES)
    }

    pub(super) fn scratch_len(&self, n_threads: usize) -> usize {
        self.worker_len() * n_threads + self.partial_len() * self.heads * self.max_splits
    }

    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    pub(super) unsafe fn run(&self, input: &Input, run: &Run<'_>) {
        let valid_rows = input.valid_rows(run);
        // SAFETY: by this function's contract; the tokens exist.
        let visible = |token| unsafe { input.visible(token, valid_rows) };
        let union = input::union((0..input.tokens).map(visible));
        let n_keys = union.len();
        let n_splits = (n_keys / LEAST_KEYS).clamp(1, self.max_splits);
        let scratch = run.scratch.get().cast::<f32>();
        let partials = scratch.wrapping_add(self.worker_len() * run.pool.n_threads());
        let partials = crate::pool::ChunkPtr::new(partials);
        let one = |item: usize, worker: usize| {
            let (head, split) = (item / n_splits, item % n_splits);
            let bound = |i: usize| union.start + n_keys * i / n_splits;
            let keys = bound(split)..bound(split + 1);
            // SAFETY: by this function's contract; each item has its own partial result, each
            // worker its own scratch memory.
            unsafe {
                let item = Item {
                    plan: self,
                    input,
                    run,
                    batch: head / input.kv_heads,
                    kv_head: head % input.kv_heads,
                    valid_rows,
                    keys,
                    partial: partials.get().add(item * self.partial_len()),
                };
                item.run(worker_scratch(run, worker, self.worker_len()));
            }
        };
        let n_items = self.heads * n_splits;
        let work = n_keys * self.heads * self.queries * (self.key_pitch + self.value_pitch);
        if work < INLINE_WORK {
            (0..n_items).for_each(|item| one(item, 0));
        } else {
            run.pool.run(n_items, &one);
        }
        for head in 0..self.heads {
            // SAFETY: by this function's contract; all items have finished.
            unsafe {
                let first = partials.get().add(head * n_splits * self.partial_len());
                self.combine(input, run, head, first, n_splits);
            }
        }
    }

    /// Combines the partial results of a head of keys and writes its results.
    ///
    /// # Safety
    /// As [`run`](Self::run); `first` points to `n_splits` partial results.
    unsafe fn combine(
        &self,
        input: &Input,
        run: &Run<'_>,
        head: usize,
        first: *mut f32,
        n_splits: usize,
    ) {
        let (batch, kv_head) = (head / input.kv_heads, head % input.kv_heads);
        let row_len = self.value_pitch + MAX_LANES;
        for query in 0..self.queries {
            // SAFETY: by this function's contract; a partial result has `row_len` elements for
            // each query.
            unsafe {
                let partial =
                    |split: usize| first.add(split * self.partial_len() + query * row_len);
                let state =
                    |split: usize, which: usize| *partial(split).add(self.value_pitch + which);
                let max = (0..n_splits)
                    .map(|split| state(split, 0))
                    .fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
                let base = if max == f32::NEG_INFINITY { 0.0 } else { max };
                let total = partial(0);
                let mut sum = 0.0;
                for split in 0..n_splits {
                    let factor = (state(split, 0) - base).exp();
                    // Without visible keys the sum of a split is 0. With NaN scores it has no
                    // greatest score.
                    let factor = if state(split, 1).is_nan() {
                        f32::NAN
                    } else {
                        factor
                    };
                    sum += state(split, 1) * factor;
                    for i in 0..input.value_dim {
                        let value = *partial(split).add(i) * factor;
                        *total.add(i) = if split == 0 {
                            value
                        } else {
                            *total.add(i) + value
                        };
                    }
                }
                let head = kv_head * input.group + query % input.group;
                let factor = final_factor(max, sum, input.sink(run.vector, head));
                let to = input.y.row([batch, query / input.group, head]);
                (run.vector.scale)(total, total, input.value_dim, factor);
                input.y.form.write(run.vector, total, input.value_dim, to);
            }
        }
    }
}

/// A head of keys, all its queries and a range of keys. Query `t, g` has index `t * group + g`.
struct Item<'a> {
    plan: &'a Split,
    input: &'a Input,
    run: &'a Run<'a>,
    batch: usize,
    kv_head: usize,
    valid_rows: usize,
    keys: Range,
    partial: *mut f32,
}

impl Item<'_> {
    /// # Safety
    /// As [`Split::run`]; `scratch` has `worker_len` elements for this call alone.
    unsafe fn run(&self, scratch: *mut f32) {
        let (plan, input, kernels) = (self.plan, self.input, self.run.vector);
        let mut buffers = Bump { next: scratch };
        let q = buffers.take(plan.queries * plan.key_pitch);
        let mut place = |pitch| Place {
            buffer: buffers.take(BLOCK * pitch),
            pitch,
            strided: false,
        };
        let key_place = place(plan.key_pitch);
        let value_place = place(plan.value_pitch);
        let scores = buffers.take(plan.queries * BLOCK);
        let mask = buffers.take(plan.queries * BLOCK);
        let head = [self.batch, self.kv_head];
        let row_len = plan.value_pitch + MAX_LANES;

        // SAFETY: by this function's contract; all buffers have the sizes that are used here, and
        // the rows of keys and values that are read are valid and visible.
        unsafe {
            for query in 0..plan.queries {
                let (token, head) = self.query(query);
                let to = q.add(query * plan.key_pitch);
                let from = input.q.row([self.batch, token, head]);
                input.q.form.read_to(kernels, from, input.head_dim, to);
                let padding = plan.key_pitch - input.head_dim;
                std::ptr::write_bytes(to.add(input.head_dim), 0, padding);
                let state = self.partial.add(query * row_len);
                std::ptr::write_bytes(state, 0, row_len);
                *state.add(plan.value_pitch) = f32::NEG_INFINITY;
            }
            let mut first = self.keys.start;
            while first < self.keys.end {
                let keys = BLOCK.min(self.keys.end - first);
                let seen = self.seen(first, keys, mask);
                if seen.any {
                    let k = input.block(kernels, Side::Keys, head, first, &seen, key_place);
                    let pitch = plan.key_pitch;
                    for query in 0..plan.queries {
                        let (q, scores) = (q.add(query * pitch), scores.add(query * BLOCK));
                        (kernels.dots)(q, k.start, k.row, pitch, keys, scores);
                        self.soften(query, first, keys, scores, mask);
                    }
                    let v = input.block(kernels, Side::Values, head, first, &seen, value_place);
                    (kernels.product)(&Tile {
                        m: plan.queries,
                        n: plan.value_pitch,
                        k: keys,
                        a: scores,
                        a_row: BLOCK,
                        a_column: 1,
                        b: v.start,
                        b_row: v.row,
                        c: self.partial,
                        c_row: row_len,
                        beta: Beta::One,
                    });
                }
                first += keys;
            }
        }
    }

    /// Token and head of a query.
    fn query(&self, query: usize) -> (usize, usize) {
        let group = self.input.group.max(1);
        (query / group, self.kv_head * group + query % group)
    }

    /// The keys of a block that a query sees, counted from `first`.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn visible(&self, query: usize, first: usize, keys: usize) -> Range {
        let (token, _) = self.query(query);
        // SAFETY: the token exists.
        let range = unsafe { self.input.visible(token, self.valid_rows) };
        let clip = |at: usize| at.saturating_sub(first).min(keys);
        clip(range.start)..clip(range.end)
    }

    /// Which keys of a block some query sees. The mask, if there is one, is read to `mask`.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn seen(&self, first: usize, keys: usize, mask: *mut f32) -> Seen {
        let mut rows = [false; BLOCK];
        for query in 0..self.plan.queries {
            // SAFETY: by this function's contract.
            let visible = unsafe { self.visible(query, first, keys) };
            if !self.input.has_mask() {
                rows[visible].fill(true);
                continue;
            }
            let (token, head) = self.query(query);
            // SAFETY: by this function's contract.
            unsafe {
                let to = mask.add(query * BLOCK);
                let at = [self.batch, head, token];
                let values = self.input.mask(self.run.vector, at, first, keys, to);
                if !std::ptr::addr_eq(values, to) {
                    std::ptr::copy_nonoverlapping(values, to, keys);
                }
                for j in visible {
                    rows[j] |= *to.add(j) != f32::NEG_INFINITY;
                }
            }
        }
        Seen::from_rows(rows, keys)
    }

    /// Replaces a query's products by exponentials and updates its state.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn soften(
        &self,
        query: usize,
        first: usize,
        keys: usize,
        scores: *mut f32,
        mask: *mut f32,
    ) {
        let (plan, kernels) = (self.plan, self.run.vector);
        // SAFETY: by this function's contract.
        unsafe {
            let visible = self.visible(query, first, keys);
            std::ptr::write_bytes(scores, 0, visible.start);
            std::ptr::write_bytes(scores.add(visible.end), 0, keys - visible.end);
            let n = visible.len();
            let values = self.partial.add(query * (plan.value_pitch + MAX_LANES));
            let (max, sum) = (
                values.add(plan.value_pitch),
                values.add(plan.value_pitch + 1),
            );
            let at = scores.add(visible.start);
            let mask = if self.input.has_mask() {
                mask.add(query * BLOCK + visible.start).cast_const()
            } else {
                std::ptr::null()
            };
            let greatest = (kernels.scores)(at, mask, at, n, self.input.scale, self.input.cap);
            let greatest = if greatest > *max { greatest } else { *max };
            let base = if greatest == f32::NEG_INFINITY {
                0.0
            } else {
                greatest
            };
            let correction = (*max - base).exp();
            if correction != 1.0 {
                (kernels.scale)(values, values, plan.value_pitch, correction);
            }
            *sum = *sum * correction + (kernels.exp_sum)(at, n, base);
            *max = greatest;
        }
    }
}
