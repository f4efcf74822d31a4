//! Softmax over the last dimension.

use kovar_core::NodeRef;
use kovar_core::ops::Op;
use kovar_core::ops::dtypes::MASKS;

use super::rows::{RowForm, Walk, broadcast};
use super::{Compiled, Entry, FLOATS, malformed, optional, worker_scratch};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { MASKS },
    result: |_| FLOATS,
    compile,
};

struct Softmax {
    /// `x`, the result and, repeated to their dims, the mask (or `x` again if there is none).
    walk: Walk<3>,
    masked: bool,
    scale: f32,
    /// Factors on the mask, by head; empty if all are 1.
    slopes: Vec<f32>,
    /// Rows of a head.
    queries: usize,
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let op = match node.op() {
        Op::Softmax(op) => *op,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let mask = match optional(resolver, node, 1)? {
        Some(mask) => {
            broadcast(&mask, x.layout.dims()).ok_or_else(|| malformed(resolver, node, "mask"))?
        }
        None => x,
    };
    let walk = Walk::rows([&x, &y, &mask]).ok_or_else(|| malformed(resolver, node, "x"))?;
    let heads = x.layout.dims().from_end(2);
    let slopes = (0..heads).map(|head| op.slope(head, heads) as f32);
    Ok(Box::new(Softmax {
        walk,
        masked: node.n_inputs() > 1,
        scale: op.scale,
        slopes: if op.max_bias == 0.0 {
            Vec::new()
        } else {
            slopes.collect()
        },
        queries: x.layout.dims().from_end(1).max(1),
        n_threads: resolver.shared.pool.n_threads(),
    }))
}

impl Softmax {
    /// Elements of scratch memory for one worker: a row of the result and one of the mask.
    fn worker_len(&self) -> usize {
        2 * self.walk.row_len().next_multiple_of(16)
    }
}

impl Kernel for Softmax {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form, mask_form]: [RowForm; 3] = self.walk.forms;
        let n = self.walk.row_len();
        let kernels = run.vector;
        self.walk.each_row(run, &|row, [x, y, mask], worker| {
            // SAFETY: the scratch memory has `worker_len` elements for each worker. Rows are
            // inside the operands, by `Kernel::run`'s contract readable and writable; in place,
            // a row's elements are read before they are written.
            unsafe {
                let scratch = worker_scratch(run, worker, self.worker_len());
                let mask_buffer = scratch.add(self.worker_len() / 2);
                let mask = if self.masked {
                    let mask = mask_form.read(kernels, mask, n, mask_buffer);
                    let head = (row / self.queries).checked_rem(self.slopes.len());
                    match head.and_then(|head| self.slopes.get(head)) {
                        Some(&slope) => {
                            (kernels.scale)(mask, mask_buffer, n, slope);
                            mask_buffer
                        }
                        None => mask,
                    }
                } else {
                    std::ptr::null()
                };
                let x = x_form.read(kernels, x, n, scratch);
                let target = y_form.target(y, scratch);
                let max = (kernels.scores)(x, mask, target, n, self.scale, 0.0);
                let base = if max == f32::NEG_INFINITY { 0.0 } else { max };
                let sum = (kernels.exp_sum)(target, n, base);
                let factor = if sum == 0.0 { 0.0 } else { 1.0 / sum };
                (kernels.scale)(target, target, n, factor);
                y_form.write(kernels, target, n, y);
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        4 * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        "softmax"
    }
}
