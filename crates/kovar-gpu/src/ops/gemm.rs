//! General products of matrices.

use kovar_core::ops::Op;
use kovar_core::{Layout, NodeRef};

use super::product::{self, Matrices, Product};
use super::{Entry, F32, FACTORS, FLOATS, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| [FACTORS, FACTORS, FLOATS].get(i).copied().unwrap_or(&[]),
    result: |_| F32,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Gemm(op) = node.op() else {
        return Err(refused());
    };
    let (a, b) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let out = resolver.output(node)?;
    let dims = *out.layout.dims();
    let c = if node.n_inputs() > 2 && op.beta != 0.0 {
        let c = resolver.input(node, 2)?;
        let layout = c.layout.broadcast_to(dims).ok_or_else(refused)?;
        let strides = strides(&layout, dims.rank());
        Some(Matrices::new(c.with_layout(layout), strides, false))
    } else {
        None
    };
    let rank = dims.rank();
    let [a_strides, b_strides] = [&a, &b].map(|factor| strides(&factor.layout, rank));
    let k = a.layout.dims().from_end(usize::from(op.transpose_a));
    let product = Product {
        batch: dims.iter().take(rank.saturating_sub(2)).copied().collect(),
        m: dims.from_end(1),
        n: dims.from_end(0),
        k,
        a: Matrices::new(a, a_strides, op.transpose_a),
        b: Matrices::new(b, b_strides, !op.transpose_b),
        c,
        out: Matrices::new(out.clone(), strides(&out.layout, rank), false),
        alpha: op.alpha,
        beta: op.beta,
        precision: op.precision,
    };
    let caps = resolver.shared.device.caps();
    product::plan(caps, product).ok_or_else(refused)
}

/// The strides along the batch dims of a result of this rank; 0 along dims where the operand is
/// broadcast.
fn strides(layout: &Layout, rank: usize) -> Vec<usize> {
    let stride = |i| match layout.dims().from_end(i) {
        1 => 0,
        _ => layout.stride_from_end(i),
    };
    (2..rank).rev().map(stride).collect()
}
