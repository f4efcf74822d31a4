//! Rotary position embedding.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, Pairing};

use super::rows::{RowForm, Walk};
use super::{Compiled, Entry, F32, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};
use crate::vector::Kernels;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| FLOATS,
    compile,
};

/// The angles of each token.
pub(super) struct Table {
    start: Address,
    /// Bytes between neighbours: tokens, pairs, cos and sin.
    strides: [usize; 3],
    pub(super) pairs: usize,
}

/// Turns the pairs of a head, `x` to `y`, by a row of the table.
pub(super) type Rotate = unsafe fn(*const f32, *const f32, *mut f32, usize);

pub(super) fn rotate_of(kernels: &Kernels, pairing: Pairing) -> Rotate {
    match pairing {
        Pairing::Normal => kernels.rotate_normal,
        Pairing::Neox => kernels.rotate_neox,
    }
}

impl Table {
    pub(super) fn new(table: &Operand<'_>) -> Self {
        let stride = |i| table.bytes(table.layout.stride_from_end(i));
        Self {
            start: table.start(),
            strides: [stride(2), stride(1), stride(0)],
            pairs: table.layout.dims().from_end(1),
        }
    }

    /// The angles of a token: in place if it is aligned and has no gaps, else copied to `buffer`.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the token exists and `buffer` has room for the row.
    pub(super) unsafe fn row(&self, token: usize, buffer: *mut f32) -> *const f32 {
        let [token_stride, pair_stride, stride] = self.strides;
        let row = self.start.get().wrapping_add(token * token_stride);
        if (pair_stride == 8 || self.pairs <= 1) && stride == 4 && row.cast::<f32>().is_aligned() {
            return row.cast();
        }
        for i in 0..2 * self.pairs {
            let at = row.wrapping_add(i / 2 * pair_stride + i % 2 * stride);
            // SAFETY: by this function's contract.
            unsafe { *buffer.add(i) = at.cast::<f32>().read_unaligned() };
        }
        buffer
    }
}

struct Rope {
    walk: Walk<2>,
    table: Table,
    tokens: usize,
    heads: usize,
    in_place: bool,
    rotate: Rotate,
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let pairing = match node.op() {
        Op::Rope(op) => op.pairing,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, table) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let dims = x.layout.dims();
    let kernels = resolver.shared.vector;
    Ok(Box::new(Rope {
        walk: Walk::rows([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?,
        table: Table::new(&table),
        tokens: dims.from_end(2).max(1),
        heads: dims.from_end(1).max(1),
        in_place: x.start().get() == y.start().get(),
        rotate: rotate_of(kernels, pairing),
        n_threads: resolver.shared.pool.n_threads(),
    }))
}

impl Rope {
    /// Elements of scratch memory for one worker: a head and a row of the table.
    fn worker_len(&self) -> usize {
        (self.walk.row_len() + 2 * self.table.pairs).next_multiple_of(16)
    }
}

impl Kernel for Rope {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form]: [RowForm; 2] = self.walk.forms;
        let (head_dim, kernels, turned) = (self.walk.row_len(), run.vector, 2 * self.table.pairs);
        self.walk.each_row(run, &|row, [x, y], worker| {
            // SAFETY: the scratch memory has `worker_len` elements for each worker. Rows are
            // inside the operands, by `Kernel::run`'s contract readable and writable; in place, a
            // head is read before it is written.
            unsafe {
                let scratch = run
                    .scratch
                    .get()
                    .cast::<f32>()
                    .add(worker * self.worker_len());
                let token = row / self.heads % self.tokens;
                let table = self.table.row(token, scratch.add(head_dim));
                let x = x_form.read(kernels, x, head_dim, scratch);
                let target = y_form.target(y, scratch);
                (self.rotate)(x, table, target, self.table.pairs);
                // Elements that do not turn are in place already, or in the scratch memory.
                if !std::ptr::addr_eq(x, target) {
                    let rest = head_dim - turned;
                    std::ptr::copy_nonoverlapping(x.add(turned), target.add(turned), rest);
                }
                if !(self.in_place && y_form.is_plain()) {
                    y_form.write(kernels, target, head_dim, y);
                }
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        "rope"
    }
}
