//! Attention of many queries at a time: queries are the lanes of the vectors.

use super::input::{self, Input, Place, Range, Seen, Side, final_factor};
use super::{BLOCK, Bump};
use crate::ops::worker_scratch;
use crate::program::Run;
use crate::vector::lanes::MAX_LANES;
use crate::vector::{Beta, OnlineSoftmax, Tile};

/// Queries (tokens times heads) of an item, unless there are few: whole vectors of every level, in
/// threes.
const USUAL_QUERIES: usize = 96;

/// The most tokens of an item.
const MAX_TOKENS: usize = 96;

/// Queries that are transposed at a time.
const STRIP: usize = 16;

/// The least number of items per thread that a prompt is cut into.
const ITEMS_PER_THREAD: usize = 4;

/// How the work is divided: an item is a head of keys and some tokens.
pub(super) struct Columns {
    /// Tokens of an item.
    tokens: usize,
    /// Queries of an item, padded to whole vectors.
    columns: usize,
    masked: bool,
    head_dim: usize,
    value_dim: usize,
}

impl Columns {
    pub(super) fn new(input: &Input, n_threads: usize, lanes: usize) -> Self {
        let heads = input.batch * input.kv_heads;
        let group = input.group.max(1);
        let mut tokens = (USUAL_QUERIES / group).clamp(1, MAX_TOKENS.min(input.tokens.max(1)));
        while tokens > 1
            && tokens * group > 2 * lanes
            && heads * input.tokens.div_ceil(tokens) < ITEMS_PER_THREAD * n_threads
        {
            tokens = tokens.div_ceil(2);
        }
        Self {
            tokens,
            columns: (tokens * group).next_multiple_of(lanes),
            masked: input.has_mask(),
            head_dim: input.head_dim,
            value_dim: input.value_dim,
        }
    }

    /// Elements of scratch memory for one worker.
    fn worker_len(&self) -> usize {
        let blocks = if self.masked { 2 } else { 1 };
        Bump::size(self.head_dim * self.columns)
            + Bump::size(self.value_dim * self.columns)
            + blocks * Bump::size(BLOCK * self.columns)
            + Bump::size(BLOCK * self.head_dim)
            + Bump::size(BLOCK * self.value_dim)
            + 5 * Bump::size(self.columns)
            + Bump::size(self.rows_len())
    }

    /// Elements of a strip of queries or results, or of a row of the mask.
    fn rows_len(&self) -> usize {
        (STRIP * self.head_dim.max(self.value_dim)).max(BLOCK)
    }

    pub(super) fn scratch_len(&self, n_threads: usize) -> usize {
        self.worker_len() * n_threads
    }

    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    pub(super) unsafe fn run(&self, input: &Input, run: &Run<'_>) {
        let heads = input.batch * input.kv_heads;
        let blocks = input.tokens.div_ceil(self.tokens);
        let valid_rows = input.valid_rows(run);
        run.pool.run(heads * blocks, &|item, worker| {
            // Later tokens see more keys, so they come first and the last items are short.
            let block = blocks - 1 - item / heads;
            let (batch, kv_head) = (item % heads / input.kv_heads, item % input.kv_heads);
            let first = block * self.tokens;
            let tokens = first..input.tokens.min(first + self.tokens);
            // SAFETY: by this function's contract; items differ in the results that they write,
            // and each worker has its own scratch memory.
            unsafe {
                let item = Item {
                    plan: self,
                    input,
                    run,
                    batch,
                    kv_head,
                    tokens,
                    valid_rows,
                };
                item.run(worker_scratch(run, worker, self.worker_len()));
            }
        });
    }
}

/// Some tokens and the heads that share a head of keys. Query `t, g` is column `t * group + g`.
struct Item<'a> {
    plan: &'a Columns,
    input: &'a Input,
    run: &'a Run<'a>,
    batch: usize,
    kv_head: usize,
    tokens: Range,
    valid_rows: usize,
}

impl Item<'_> {
    /// # Safety
    /// As [`Columns::run`]; `scratch` has `worker_len` elements for this call alone.
    unsafe fn run(&self, scratch: *mut f32) {
        let (plan, input, kernels) = (self.plan, self.input, self.run.vector);
        let columns = plan.columns;
        let mut buffers = Bump { next: scratch };
        let q = buffers.take(plan.head_dim * columns);
        let sums = buffers.take(plan.value_dim * columns);
        let scores = buffers.take(BLOCK * columns);
        let mask = if plan.masked {
            buffers.take(BLOCK * columns)
        } else {
            std::ptr::null_mut()
        };
        let mut place = |pitch| Place {
            buffer: buffers.take(BLOCK * pitch),
            pitch,
            strided: true,
        };
        let key_place = place(plan.head_dim);
        let value_place = place(plan.value_dim);
        let [max, sum, correction, first_keys, end_keys] =
            std::array::from_fn(|_| buffers.take(columns));
        let rows = buffers.take(plan.rows_len());
        let head = [self.batch, self.kv_head];

        let mut ranges = [const { 0..0 }; MAX_TOKENS];
        for (range, token) in ranges.iter_mut().zip(self.tokens.clone()) {
            // SAFETY: the token exists.
            *range = unsafe { input.visible(token, self.valid_rows) };
        }
        let ranges = &ranges[..self.tokens.len()];
        let union = input::union(ranges.iter().cloned());

        // SAFETY: by this function's contract; all buffers have the sizes that are used here, and
        // the rows of keys and values that are read are valid and visible.
        unsafe {
            self.load_queries(q, rows);
            for column in 0..columns {
                *max.add(column) = f32::NEG_INFINITY;
                *sum.add(column) = 0.0;
            }
            let mut beta = Beta::Zero;
            let mut first = union.start;
            while first < union.end {
                let keys = BLOCK.min(union.end - first);
                let whole = ranges
                    .iter()
                    .all(|range| range.start <= first && range.end >= first + keys);
                let mut seen = Seen::new(ranges.iter().cloned(), first, keys);
                if plan.masked {
                    seen = self.load_mask(ranges, first, keys, mask, rows);
                }
                if !seen.any {
                    first += keys;
                    continue;
                }
                if !whole {
                    self.load_ranges(ranges, first, keys, first_keys, end_keys);
                }
                let k = input.block(kernels, Side::Keys, head, first, &seen, key_place);
                (kernels.product)(&Tile {
                    m: keys,
                    n: columns,
                    k: plan.head_dim,
                    a: k.start,
                    a_row: k.row,
                    a_column: k.column,
                    b: q,
                    b_row: columns,
                    c: scores,
                    c_row: columns,
                    beta: Beta::Zero,
                });
                let bound = |rows: *mut f32| {
                    if whole {
                        std::ptr::null()
                    } else {
                        rows.cast_const()
                    }
                };
                (kernels.online_softmax)(&OnlineSoftmax {
                    scores,
                    keys,
                    columns,
                    scale: input.scale,
                    cap: input.cap,
                    first: bound(first_keys),
                    end: bound(end_keys),
                    mask,
                    max,
                    sum,
                    correction,
                });
                let v = input.block(kernels, Side::Values, head, first, &seen, value_place);
                (kernels.product)(&Tile {
                    m: plan.value_dim,
                    n: columns,
                    k: keys,
                    a: v.start,
                    a_row: v.column,
                    a_column: v.row,
                    b: scores,
                    b_row: columns,
                    c: sums,
                    c_row: columns,
                    beta,
                });
                beta = Beta::Columns(correction);
                first += keys;
            }
            if matches!(beta, Beta::Zero) {
                std::ptr::write_bytes(sums, 0, plan.value_dim * columns);
            }
            self.store(sums, max, sum, rows);
        }
    }

    fn n_queries(&self) -> usize {
        self.tokens.len() * self.input.group
    }

    /// Token and head of a column's query.
    fn query(&self, column: usize) -> (usize, usize) {
        let group = self.input.group.max(1);
        let token = self.tokens.start + column / group;
        (token, self.kv_head * group + column % group)
    }

    /// Writes the queries to `q`, `[head_dim, columns]`. Padding columns are zero.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn load_queries(&self, q: *mut f32, rows: *mut f32) {
        let (plan, heads, kernels) = (self.plan, &self.input.q, self.run.vector);
        let (n_queries, dim) = (self.n_queries(), plan.head_dim);
        // SAFETY: by this function's contract; there is room for `STRIP` rows.
        unsafe {
            if n_queries < plan.columns {
                std::ptr::write_bytes(q, 0, dim * plan.columns);
            }
            for first in (0..n_queries).step_by(STRIP) {
                let n = STRIP.min(n_queries - first);
                for i in 0..n {
                    let (token, head) = self.query(first + i);
                    let from = heads.row([self.batch, token, head]);
                    heads.form.read_to(kernels, from, dim, rows.add(i * dim));
                }
                (kernels.transpose)(rows, dim, n, dim, q.add(first), plan.columns);
            }
        }
    }

    /// Writes the range of keys that each query sees, counted from `first`; padding columns see
    /// none.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn load_ranges(
        &self,
        ranges: &[Range],
        first: usize,
        keys: usize,
        first_keys: *mut f32,
        end_keys: *mut f32,
    ) {
        let group = self.input.group.max(1);
        for column in 0..self.plan.columns {
            let range = ranges.get(column / group).cloned().unwrap_or(0..0);
            let clip = |at: usize| at.saturating_sub(first).min(keys) as f32;
            // SAFETY: by this function's contract.
            unsafe {
                *first_keys.add(column) = clip(range.start);
                *end_keys.add(column) = clip(range.end);
            }
        }
    }

    /// Writes the mask to `mask`, `[keys, columns]`, and returns which keys it leaves visible.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn load_mask(
        &self,
        ranges: &[Range],
        first: usize,
        keys: usize,
        mask: *mut f32,
        row: *mut f32,
    ) -> Seen {
        let columns = self.plan.columns;
        let mut rows = [false; BLOCK];
        // SAFETY: by this function's contract; keys beyond the valid ones are not read.
        unsafe {
            std::ptr::write_bytes(mask, 0, keys * columns);
            for column in 0..self.n_queries() {
                let (token, head) = self.query(column);
                let range = ranges
                    .get(token - self.tokens.start)
                    .cloned()
                    .unwrap_or(0..0);
                let at = [self.batch, head, token];
                let values = self.input.mask(self.run.vector, at, first, keys, row);
                for (j, seen) in rows.iter_mut().enumerate().take(keys) {
                    let value = *values.add(j);
                    *mask.add(j * columns + column) = value;
                    *seen |= range.contains(&(first + j)) && value != f32::NEG_INFINITY;
                }
            }
        }
        Seen::from_rows(rows, keys)
    }

    /// Writes the results.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn store(&self, sums: *const f32, max: *const f32, sum: *const f32, rows: *mut f32) {
        let (plan, heads, kernels) = (self.plan, &self.input.y, self.run.vector);
        let (n_queries, dim) = (self.n_queries(), plan.value_dim);
        for first in (0..n_queries).step_by(STRIP) {
            let n = STRIP.min(n_queries - first);
            // SAFETY: by this function's contract; there is room for `STRIP` rows.
            unsafe {
                (kernels.transpose)(sums.add(first), plan.columns, dim, n, rows, dim);
                for i in 0..n {
                    let (token, head) = self.query(first + i);
                    let sink = self.input.sink(kernels, head);
                    let factor = final_factor(*max.add(first + i), *sum.add(first + i), sink);
                    let to = heads.row([self.batch, token, head]);
                    let row = rows.add(i * dim);
                    let target = heads.form.target(to, row);
                    (kernels.scale)(row, target, dim, factor);
                    heads.form.write(kernels, target, dim, to);
                }
            }
        }
    }
}

const _: () = assert!(USUAL_QUERIES.is_multiple_of(MAX_LANES));
