//! Products with a weight on the left.

use kovar_core::ops::{Matmul, Op};
use kovar_core::{Layout, NodeRef};

use super::product::{self, Matrices, Product};
use super::{Entry, F32, FACTORS, FLOATS, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| [FACTORS, FLOATS].get(i).copied().unwrap_or(&[]),
    result: |_| F32,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let Op::Matmul(Matmul { precision }) = *node.op() else {
        return Err(no_kernel(resolver.shared, node));
    };
    let (w, x) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let out = resolver.output(node)?;
    let batches = batches(&w.layout, &x.layout, &out.layout);
    let strides = |i: usize| batches.iter().map(|(_, strides)| strides[i]).collect();
    let product = Product {
        batch: batches.iter().map(|&(size, _)| size).collect(),
        m: x.layout.dims().from_end(1),
        n: w.layout.dims().from_end(1),
        k: x.layout.dims().from_end(0),
        a: Matrices::new(x, strides(1), false),
        b: Matrices::new(w, strides(0), false),
        c: None,
        out: Matrices::new(out, strides(2), false),
        alpha: 1.0,
        beta: 0.0,
        precision,
    };
    let caps = resolver.shared.device.caps();
    product::plan(caps, product).ok_or_else(|| no_kernel(resolver.shared, node))
}

/// The batch dims, outermost first: their sizes, and the strides of the weight, of `x` and of the
/// result. A dim of `x` becomes two dims if consecutive indices share a weight.
fn batches(w: &Layout, x: &Layout, out: &Layout) -> Vec<(usize, [usize; 3])> {
    let mut batches = Vec::new();
    for i in (2..x.dims().rank()).rev() {
        let size = if i < w.dims().rank() {
            w.dims().from_end(i)
        } else {
            1
        };
        let sharing = x.dims().from_end(i).checked_div(size).unwrap_or(0);
        let [w, x, out] = [w, x, out].map(|layout| layout.stride_from_end(i));
        batches.push((size, [w, x * sharing, out * sharing]));
        batches.push((sharing, [0, x, out]));
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use kovar_core::Dims;

    #[test]
    fn consecutive_heads_share_a_weight() {
        let layout = |sizes: &[usize]| Layout::contiguous(Dims::new(sizes).unwrap()).unwrap();
        let (w, x) = (layout(&[2, 5, 7]), layout(&[3, 4, 1, 7]));
        let out = layout(&[3, 4, 1, 5]);
        let expected = [
            (1, [0, 84, 60]),
            (3, [0, 28, 20]),
            (2, [35, 14, 10]),
            (2, [0, 7, 5]),
        ];
        assert_eq!(batches(&w, &x, &out), expected);
    }
}
