//! Rotary position embedding.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, Pairing};

use super::rows::{RowForm, Walk};
use super::{Compiled, Entry, F32, FLOATS, malformed, worker_scratch};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};
use crate::vector::Kernels;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| FLOATS,
    compile,
};

/// The table of a rope: for each token and pair a cos and a sin, or a 2 x 2 matrix.
pub(super) struct Table {
    start: Address,
    /// Bytes between neighbours: tokens, pairs, rows and columns of a matrix.
    strides: [usize; 4],
    pairs: usize,
    /// Rows of a matrix: 2, or 1 for a cos and a sin.
    rows: usize,
    /// Whether the row of a token has no gaps.
    dense: bool,
}

/// Turns the pairs of a head, `x` to `y`, by a row of the table.
pub(super) type Turn = unsafe fn(*const f32, *const f32, *mut f32, usize);

pub(super) fn turn_of(kernels: &Kernels, pairing: Pairing) -> Turn {
    match pairing {
        Pairing::Normal => kernels.rotate_normal,
        Pairing::Neox => kernels.rotate_neox,
    }
}

impl Table {
    /// A table `[tokens, pairs, 2]` of cos and sin, or `[tokens, pairs, 2, 2]` of matrices, after
    /// any outer dims.
    pub(super) fn new(table: &Operand<'_>, rows: usize) -> Self {
        let outer = rows - 1;
        let strides = [outer + 2, outer + 1, 1, 0];
        let strides = strides.map(|i| table.bytes(table.layout.stride_from_end(i)));
        let pairs = table.layout.dims().from_end(outer + 1);
        let [_, pair_stride, row_stride, stride] = strides;
        Self {
            start: table.start(),
            strides,
            pairs,
            rows,
            dense: (pairs <= 1 || pair_stride == 8 * rows)
                && (rows == 1 || row_stride == 8)
                && stride == 4,
        }
    }

    /// Elements of a token.
    pub(super) fn row_len(&self) -> usize {
        2 * self.rows * self.pairs
    }

    /// Turns a head, `x` to `target`, by a row of the table. Elements of `x` without an angle are
    /// copied.
    ///
    /// # Safety
    /// `x` is readable and `target` is writable for `head_dim` elements; they are the same or
    /// apart. `row` is the row of a token.
    #[inline]
    pub(super) unsafe fn turn_head(
        &self,
        turn: Turn,
        x: *const f32,
        row: *const f32,
        target: *mut f32,
        head_dim: usize,
    ) {
        let turned = 2 * self.pairs;
        let rest = head_dim - turned;
        // SAFETY: by this function's contract.
        unsafe {
            turn(x, row, target, self.pairs);
            if rest > 0 && !std::ptr::addr_eq(x, target) {
                std::ptr::copy_nonoverlapping(x.add(turned), target.add(turned), rest);
            }
        }
    }

    /// The row of a token: in place if it is aligned and has no gaps, else copied to `buffer`.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the token exists and `buffer` has room for the row.
    #[inline]
    pub(super) unsafe fn row(&self, token: usize, buffer: *mut f32) -> *const f32 {
        let [token_stride, pair_stride, row_stride, stride] = self.strides;
        let row = self.start.get().wrapping_add(token * token_stride);
        // Imported bytes may have any alignment.
        if self.dense && row.cast::<f32>().is_aligned() {
            return row.cast();
        }
        for i in 0..self.row_len() {
            let (pair, matrix_row) = (i / 2 / self.rows, i / 2 % self.rows);
            let at = pair * pair_stride + matrix_row * row_stride + i % 2 * stride;
            // SAFETY: by this function's contract.
            unsafe { *buffer.add(i) = row.wrapping_add(at).cast::<f32>().read_unaligned() };
        }
        buffer
    }
}

struct Rope {
    walk: Walk<2>,
    table: Table,
    tokens: usize,
    heads: usize,
    turn: Turn,
    n_threads: usize,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let Op::Rope(op) = node.op() else {
        return Err(malformed(resolver, node, "x"));
    };
    let turn = turn_of(resolver.shared.vector, op.pairing);
    let table = Table::new(&resolver.input(node, 1)?, 1);
    compile_with(resolver, node, resolver.write(node)?, table, turn)
}

/// The kernel of a node that turns the heads of `x`, its operand 0, by `table`, to those of `y`.
pub(super) fn compile_with(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    y: Operand<'_>,
    table: Table,
    turn: Turn,
) -> Compiled {
    let x = resolver.input(node, 0)?;
    let dims = x.layout.dims();
    Ok(Box::new(Rope {
        walk: Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?,
        table,
        tokens: dims.from_end(2).max(1),
        heads: dims.from_end(1).max(1),
        turn,
        n_threads: resolver.shared.pool.n_threads(),
        name: node.op().name(),
    }))
}

impl Rope {
    /// Elements of scratch memory for one worker: a head and a row of the table.
    fn worker_len(&self) -> usize {
        (self.walk.row_len() + self.table.row_len()).next_multiple_of(16)
    }
}

impl Kernel for Rope {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form]: [RowForm; 2] = self.walk.forms;
        let (head_dim, kernels) = (self.walk.row_len(), run.vector);
        let worker_len = self.worker_len();
        self.walk.each_row(run, &|row, [x, y], worker| {
            // SAFETY: the scratch memory has `worker_len` elements for each worker. Rows are
            // inside the operands, by `Kernel::run`'s contract readable and writable; in place, a
            // head is read before it is written.
            unsafe {
                let scratch = worker_scratch(run, worker, worker_len);
                let token = row / self.heads % self.tokens;
                let table_row = self.table.row(token, scratch.add(head_dim));
                let x = x_form.read(kernels, x, head_dim, scratch);
                let target = y_form.target(y, scratch);
                self.table
                    .turn_head(self.turn, x, table_row, target, head_dim);
                y_form.write(kernels, target, head_dim, y);
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
