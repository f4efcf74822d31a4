//! Rotary position embedding by matrices, with attention's permutation.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, Pairing};

use super::rows::{RowForm, Walk};
use super::{Compiled, Entry, F32, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| FLOATS,
    compile,
};

struct RopeApply {
    /// `x`, and the result with heads and tokens swapped back: in this order a token's heads
    /// share its matrices while they are near.
    walk: Walk<2>,
    table: Address,
    /// Bytes between neighbours of the table: tokens, pairs, rows and columns of a matrix.
    table_strides: [usize; 4],
    tokens: usize,
    heads: usize,
    pairs: usize,
    apply: unsafe fn(*const f32, *const f32, *mut f32, usize),
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let pairing = match node.op() {
        Op::RopeApply(op) => op.pairing,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, table) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let swapped = y.layout.permute(&[0, 2, 1, 3]);
    let swapped = swapped.ok_or_else(|| malformed(resolver, node, "x"))?;
    let kernels = resolver.shared.vector;
    Ok(Box::new(RopeApply {
        walk: Walk::rows([&x, &y.with_layout(swapped)])
            .ok_or_else(|| malformed(resolver, node, "x"))?,
        table: table.start(),
        table_strides: [3, 2, 1, 0].map(|i| table.bytes(table.layout.stride_from_end(i))),
        tokens: x.layout.dims().from_end(2).max(1),
        heads: x.layout.dims().from_end(1).max(1),
        pairs: table.layout.dims().from_end(2),
        apply: match pairing {
            Pairing::Normal => kernels.apply_normal,
            Pairing::Neox => kernels.apply_neox,
        },
        n_threads: resolver.shared.pool.n_threads(),
    }))
}

impl RopeApply {
    /// Elements of scratch memory for one worker: a head and a row of the table.
    fn worker_len(&self) -> usize {
        (self.walk.row_len() + 4 * self.pairs).next_multiple_of(16)
    }

    /// The matrices of a token: in place if they have no gaps, else copied to `buffer`.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the token exists and `buffer` has room for its matrices.
    unsafe fn matrices(&self, token: usize, buffer: *mut f32) -> *const f32 {
        let [token_stride, pair_stride, row_stride, stride] = self.table_strides;
        let start = self.table.get().wrapping_add(token * token_stride);
        let dense = (pair_stride == 16 || self.pairs <= 1) && row_stride == 8 && stride == 4;
        // Imported bytes may have any alignment.
        if dense && start.cast::<f32>().is_aligned() {
            return start.cast();
        }
        for i in 0..4 * self.pairs {
            let at = i / 4 * pair_stride + i / 2 % 2 * row_stride + i % 2 * stride;
            let at = start.wrapping_add(at);
            // SAFETY: by this function's contract.
            unsafe { *buffer.add(i) = at.cast::<f32>().read_unaligned() };
        }
        buffer
    }
}

impl Kernel for RopeApply {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form]: [RowForm; 2] = self.walk.forms;
        let (d, kernels) = (self.walk.row_len(), run.vector);
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
                let table = self.matrices(row / self.heads % self.tokens, scratch.add(d));
                let x = x_form.read(kernels, x, d, scratch);
                let target = y_form.target(y, scratch);
                (self.apply)(x, table, target, self.pairs);
                y_form.write(kernels, target, d, y);
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        "rope_apply"
    }
}
