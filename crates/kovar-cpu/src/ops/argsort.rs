//! The indices that sort rows.

use std::mem::MaybeUninit;

use kovar_core::NodeRef;
use kovar_core::ops::{Op, SortOrder};

use super::rows::{PIECE, Walk, repeated};
use super::{Compiled, Entry, FLOATS, I32, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| I32,
    compile,
};

struct Argsort {
    /// `x`, and the first element of each row of the result repeated along the rows of `x`.
    walk: Walk<2>,
    order: SortOrder,
    /// Indices that are written for each row.
    k: usize,
    /// Bytes between neighbours of the result.
    stride: usize,
    n_threads: usize,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let Op::Argsort(op) = node.op() else {
        return Err(malformed());
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let first = repeated(&y, x.layout.dims()).ok_or_else(malformed)?;
    Ok(Box::new(Argsort {
        walk: Walk::rows([&x, &first]).ok_or_else(malformed)?,
        order: op.order,
        k: y.layout.dims().from_end(0),
        stride: y.bytes(y.layout.stride_from_end(0)),
        n_threads: resolver.shared.pool.n_threads(),
        name: node.op().name(),
    }))
}

/// A number that orders as the element does: NaN above all others, 0 and -0 equal.
#[inline(always)]
fn sort_key(x: f32) -> u32 {
    // Adding 0 turns -0 into 0.
    let bits = (x + 0.0).to_bits();
    let negative = ((bits as i32) >> 31) as u32;
    let ordered = bits ^ (negative | 0x8000_0000);
    if x.is_nan() { u32::MAX } else { ordered }
}

impl Argsort {
    /// Scratch elements of one worker.
    fn worker_len(&self) -> usize {
        self.walk.row_len().next_multiple_of(8)
    }

    /// Sorts a row's first `k` elements to the front. The upper half of an element is its key, the
    /// lower half its index.
    fn sort(&self, keys: &mut [u64]) {
        // Elements differ at least in their indices, so an unstable sort gives the stable order.
        if self.k < keys.len() {
            if self.k == 0 {
                return;
            }
            keys.select_nth_unstable(self.k - 1);
        }
        if let Some(first) = keys.get_mut(..self.k) {
            first.sort_unstable();
        }
    }
}

impl Kernel for Argsort {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, _] = self.walk.forms;
        let row_len = self.walk.row_len();
        let flip = match self.order {
            SortOrder::Ascending => 0,
            SortOrder::Descending => u32::MAX,
        };
        self.walk.each_row(run, &|_, [x, y], worker| {
            let mut buffer = MaybeUninit::<[f32; PIECE]>::uninit();
            // SAFETY: the scratch memory has `worker_len` elements for each worker, aligned.
            let keys = unsafe {
                let scratch = run.scratch.get().cast::<u64>();
                let own = scratch.add(worker * self.worker_len());
                own.write_bytes(0, row_len);
                std::slice::from_raw_parts_mut(own, row_len)
            };
            for (piece, keys) in keys.chunks_mut(PIECE).enumerate() {
                let (column, n) = (piece * PIECE, keys.len());
                // SAFETY: the piece is inside the row, by `Kernel::run`'s contract readable.
                let values = unsafe {
                    let from = x_form.at(x, column);
                    let x = x_form.read(run.vector, from, n, buffer.as_mut_ptr().cast());
                    std::slice::from_raw_parts(x, n)
                };
                for (i, (key, &value)) in keys.iter_mut().zip(values).enumerate() {
                    *key = u64::from(sort_key(value) ^ flip) << 32 | (column + i) as u64;
                }
            }
            self.sort(keys);
            for (i, &key) in keys.iter().take(self.k).enumerate() {
                // SAFETY: the element is inside the result's row, by `Kernel::run`'s contract
                // writable.
                unsafe {
                    y.add(i * self.stride)
                        .cast::<i32>()
                        .write_unaligned(key as i32)
                };
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        size_of::<u64>() * self.worker_len() * self.n_threads
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use super::sort_key;

    #[test]
    fn keys_are_in_the_order_of_the_numbers() {
        let rising = [
            f32::NEG_INFINITY,
            -3.0,
            -1e-40,
            0.0,
            1e-40,
            2.0,
            f32::INFINITY,
            f32::NAN,
        ];
        assert!(rising.is_sorted_by(|&a, &b| sort_key(a) < sort_key(b)));
        assert_eq!(sort_key(0.0), sort_key(-0.0));
        assert_eq!(sort_key(-f32::NAN), sort_key(f32::NAN));
    }
}
