//! Copies, casts and makes contiguous.

use kovar_core::NodeRef;
use kovar_core::backend::Reason;
use kovar_core::ops::dtypes::PLAIN;

use super::rearrange::{Mode, Rearrangement};
use super::unary::{CAST, of_kind};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    refuses: |_, node| refused(node),
    plan,
};

/// Casts are among [`FLOATS`].
fn refused(node: NodeRef<'_>) -> Option<Reason> {
    let (x, y) = (node.input(0)?.dtype, node.output().dtype);
    let refuse = |operand, dtype| {
        Some(Reason::DType {
            op: node.op().name(),
            operand,
            dtype,
        })
    };
    match (x == y, FLOATS.contains(&x), FLOATS.contains(&y)) {
        (true, ..) | (_, true, true) => None,
        (_, false, _) => refuse("x", x),
        _ => refuse("result", y),
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    if out.dtype != x.dtype {
        return of_kind(resolver, node, CAST, [0.0; 4]);
    }
    let copied = Rearrangement {
        out,
        x,
        mode: Mode::Copy,
        before: Vec::new(),
        fill: [0; 2],
    };
    let mut dispatches = Vec::new();
    let planned = copied.plan(resolver.shared.device.caps(), &mut dispatches);
    planned.ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}
