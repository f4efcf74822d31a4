//! Rotary position embedding of keys on their way into a cache.

use kovar_core::fusion::FusedNodes;
use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef};

use super::super::rope::{Table, Turn, turn_of};
use super::super::rows::{RowForm, Walk};
use super::super::set_rows::{Ids, first_row, row_stride};
use super::super::{Compiled, worker_scratch};
use super::{Entry, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry { takes, compile };

/// Whether tokens are rows of the cache, and only the cache takes the turned keys.
fn takes(group: &FusedNodes<'_>) -> bool {
    let mut nodes = group.iter();
    let is_rope =
        |node: NodeRef<'_>| matches!(node.op(), Op::Rope(_)) && node.output().dims().rank() == 3;
    let is_set_rows = |node: NodeRef<'_>| matches!(node.op(), Op::SetRows(_));
    let pair = nodes.next().is_some_and(is_rope) && nodes.next().is_some_and(is_set_rows);
    pair && nodes.next().is_none() && group.kept == [false, true]
}

struct RopeSetRows {
    /// Row 0, head by head, of the keys and of the cache.
    walk: Walk<2>,
    /// Bytes from one row to the next.
    strides: [usize; 2],
    ids: Ids,
    table: Table,
    turn: Turn,
    /// Turned keys without gaps.
    between: RowForm,
    name: &'static str,
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let malformed = || malformed(resolver, group);
    let mut nodes = group.iter();
    let (rope, set_rows) = nodes.next().zip(nodes.next()).ok_or_else(malformed)?;
    let Op::Rope(op) = rope.op() else {
        return Err(malformed());
    };
    let (x, table) = (resolver.input(rope, 0)?, resolver.input(rope, 1)?);
    let (ids, y) = (resolver.input(set_rows, 1)?, resolver.write(set_rows)?);
    let walk = || Walk::rows([&first_row(&x)?, &first_row(&y)?]);
    Ok(Box::new(RopeSetRows {
        walk: walk().ok_or_else(malformed)?,
        strides: [row_stride(&x), row_stride(&y)],
        ids: Ids::new(&ids, &y),
        table: Table::new(&table, 1),
        turn: turn_of(resolver.shared.vector, op.pairing),
        between: RowForm::plain(rope.output().dtype),
        name: group.fusion.name(),
        n_threads: resolver.shared.pool.n_threads(),
    }))
}

impl RopeSetRows {
    /// Elements of scratch memory for one worker: a head, twice, and a row of the table.
    fn worker_len(&self) -> usize {
        (2 * self.walk.row_len() + self.table.row_len()).next_multiple_of(16)
    }

    /// Turns the heads of a token and writes them to a row of the cache.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the token and the row exist, no other thread writes that row meanwhile,
    /// and `scratch` has room for [`worker_len`](Self::worker_len) elements.
    unsafe fn set_row(&self, run: &Run<'_>, token: usize, row: usize, scratch: *mut f32) {
        let [x_form, y_form] = self.walk.forms;
        let (head_dim, kernels) = (self.walk.row_len(), run.vector);
        // SAFETY: by this function's contract; heads are inside the operands, and the regions of
        // the scratch memory are apart.
        unsafe {
            let rounded = scratch.add(head_dim);
            let table_row = self.table.row(token, rounded.add(head_dim));
            for head in 0..self.walk.n_rows() {
                let [x, y] = self.walk.row(head);
                let x = x.wrapping_add(token * self.strides[0]);
                let y = y.wrapping_add(row * self.strides[1]);
                let x = x_form.read(kernels, x, head_dim, scratch);
                self.table
                    .turn_head(self.turn, x, table_row, scratch, head_dim);
                // As without fusion, the cache takes the keys rounded to their own dtype.
                if self.between.dtype() != DType::F32 {
                    self.between
                        .write(kernels, scratch, head_dim, rounded.cast());
                    self.between
                        .read_to(kernels, rounded.cast(), head_dim, scratch);
                }
                y_form.write(kernels, scratch, head_dim, y);
            }
        }
    }
}

impl Kernel for RopeSetRows {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let row_elements = self.walk.n_rows() * self.walk.row_len();
        // SAFETY: by `Kernel::run`'s contract; only one chunk writes a row, and the scratch memory
        // has `worker_len` elements for each worker.
        unsafe {
            self.ids.each(run, row_elements, &|token, row, worker| {
                let scratch = worker_scratch(run, worker, self.worker_len());
                self.set_row(run, token, row, scratch);
            });
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
