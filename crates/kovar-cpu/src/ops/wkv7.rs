//! The state recurrence of RWKV-7. Heads are independent and are distributed over the threads. The
//! tokens of a head run one after another on its state, which stays in the L1 cache meanwhile.

use kovar_core::ops::Op;
use kovar_core::{NodeRef, ScalarId};

use super::rows::{GRAIN, RowForm, Walk};
use super::{Compiled, Entry, F32, FLOATS, malformed, worker_scratch};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};
use crate::vector::Wkv7Token;
use crate::vector::lanes::MAX_LANES;

/// The operand index of the state.
const STATE: usize = 6;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == STATE { F32 } else { FLOATS },
    result: |_| FLOATS,
    compile,
};

struct Wkv7 {
    /// `r`, `w`, `k`, `v`, `a`, `b` and the result: a row for each token and head.
    walk: Walk<7>,
    tokens: usize,
    heads: usize,
    state: Address,
    /// Bytes between neighbours of the state: heads, rows, columns.
    state_strides: [usize; 3],
    n_valid: Option<ScalarId>,
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let n_valid = match node.op() {
        Op::Wkv7(op) => op.n_valid,
        _ => return Err(malformed(resolver, node, "r")),
    };
    let input = |i| resolver.input(node, i);
    let (r, w, k) = (input(0)?, input(1)?, input(2)?);
    let (v, a, b) = (input(3)?, input(4)?, input(5)?);
    let (state, y) = (resolver.update(node)?, resolver.write(node)?);
    let walk = Walk::rows([&r, &w, &k, &v, &a, &b, &y]);
    Ok(Box::new(Wkv7 {
        walk: walk.ok_or_else(|| malformed(resolver, node, "r"))?,
        tokens: r.layout.dims().from_end(2),
        heads: r.layout.dims().from_end(1),
        state: state.start(),
        state_strides: [2, 1, 0].map(|i| state.bytes(state.layout.stride_from_end(i))),
        n_valid,
        n_threads: resolver.shared.pool.n_threads(),
    }))
}

impl Wkv7 {
    /// The length of a vector padded to whole vectors of every level.
    fn padded(&self) -> usize {
        self.walk.row_len().next_multiple_of(MAX_LANES)
    }

    /// Elements of scratch memory for one worker: seven vectors and the state of a head.
    fn worker_len(&self) -> usize {
        (7 + self.walk.row_len()) * self.padded()
    }

    /// Whether the state's rows are whole vectors without gaps, which are updated in place.
    fn is_direct(&self) -> bool {
        let [_, rows, columns] = self.state_strides;
        self.walk.row_len() == self.padded() && columns == 4 && rows.is_multiple_of(4)
    }

    /// The address of an element of a head's state.
    fn element(&self, head: usize, row: usize, column: usize) -> *mut f32 {
        let [heads, rows, columns] = self.state_strides;
        let at = head * heads + row * rows + column * columns;
        self.state.get().wrapping_add(at).cast()
    }

    /// Runs the tokens of a head on its state, `pitch` elements from row to row.
    ///
    /// # Safety
    /// As [`Kernel::run`]; `vectors` has room for seven vectors, whose padding is zero, and no
    /// other thread accesses the head's state and results meanwhile.
    unsafe fn tokens(
        &self,
        run: &Run<'_>,
        head: usize,
        (state, pitch): (*mut f32, usize),
        vectors: *mut f32,
    ) {
        let (n, padded, kernels) = (self.walk.row_len(), self.padded(), run.vector);
        let forms: [RowForm; 7] = self.walk.forms;
        let valid = run.valid(self.n_valid, self.tokens);
        for token in 0..self.tokens {
            let rows = self.walk.row(token * self.heads + head);
            // SAFETY: by this function's contract; rows are inside the operands.
            unsafe {
                let y = rows[6];
                let result = forms[6].target(y, vectors.add(6 * padded));
                if token < valid {
                    let mut at = [std::ptr::null(); 6];
                    for (i, at) in at.iter_mut().enumerate() {
                        let buffer = vectors.add(i * padded);
                        *at = if n == padded {
                            forms[i].read(kernels, rows[i], n, buffer)
                        } else {
                            forms[i].read_to(kernels, rows[i], n, buffer);
                            buffer
                        };
                    }
                    let [r, w, k, v, a, b] = at;
                    (kernels.wkv7_token)(&Wkv7Token {
                        rows: n,
                        columns: padded,
                        state,
                        pitch,
                        r,
                        w,
                        k,
                        v,
                        a,
                        b,
                        y: result,
                    });
                } else {
                    std::slice::from_raw_parts_mut(result, n).fill(0.0);
                }
                forms[6].write(kernels, result, n, y);
            }
        }
    }

    /// Runs the tokens of a head on a copy of its state.
    ///
    /// # Safety
    /// As [`tokens`](Self::tokens); `copy` has room for the rows of a head's state, padded.
    unsafe fn on_copy(&self, run: &Run<'_>, head: usize, copy: *mut f32, vectors: *mut f32) {
        let (n, padded) = (self.walk.row_len(), self.padded());
        // SAFETY: by this function's contract.
        unsafe {
            copy.write_bytes(0, n * padded);
            for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let value = self.element(head, row, column).read_unaligned();
                *copy.add(row * padded + column) = value;
            }
            self.tokens(run, head, (copy, padded), vectors);
            for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let value = *copy.add(row * padded + column);
                self.element(head, row, column).write_unaligned(value);
            }
        }
    }
}

impl Kernel for Wkv7 {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let n = self.walk.row_len();
        let grain = GRAIN.div_ceil((self.tokens * n * n).max(1));
        run.pool.run_ranges(self.heads, grain, &|heads, worker| {
            // SAFETY: the scratch memory has `worker_len` elements for each worker. By
            // `Kernel::run`'s contract the operands are readable, and the state and the result
            // writable; no two chunks have the same head.
            unsafe {
                let vectors = worker_scratch(run, worker, self.worker_len());
                vectors.write_bytes(0, 7 * self.padded());
                for head in heads {
                    if self.is_direct() {
                        let pitch = self.state_strides[1] / size_of::<f32>();
                        self.tokens(run, head, (self.element(head, 0, 0), pitch), vectors);
                    } else {
                        let copy = vectors.add(7 * self.padded());
                        self.on_copy(run, head, copy, vectors);
                    }
                }
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        "wkv7"
    }
}
