//! Copies, casts and makes contiguous.

use kovar_core::NodeRef;
use kovar_core::ops::dtypes::PLAIN;

use super::rearrange::{Mode, Rearrangement};
use super::unary::{CAST, of_kind};
use super::{Entry, FLOATS, Planned, cast, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    if out.dtype != x.dtype {
        if FLOATS.contains(&out.dtype) && FLOATS.contains(&x.dtype) {
            return of_kind(resolver, node, CAST, [0.0; 4]);
        }
        return cast::plan(caps, &out, &x).ok_or_else(|| no_kernel(resolver.shared, node));
    }
    let copied = Rearrangement {
        out,
        x,
        mode: Mode::Copy,
        before: Vec::new(),
        fill: [0; 2],
    };
    let mut dispatches = Vec::new();
    let planned = copied.plan(caps, &mut dispatches);
    planned.ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}
