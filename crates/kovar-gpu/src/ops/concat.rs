//! Operands one after another along a dimension.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::pieces::slice;
use super::rearrange::{Mode, Rearrangement};
use super::{Entry, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry::plain(plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Concat(op) = node.op() else {
        return Err(refused());
    };
    let (caps, out) = (resolver.shared.device.caps(), resolver.output(node)?);
    let mut dispatches = Vec::new();
    let mut start = 0;
    for i in 0..node.inputs().count() {
        let x = resolver.input(node, i)?;
        let size = *x.layout.dims().get(op.dim).ok_or_else(refused)?;
        let moved = Rearrangement {
            out: slice(&out, op.dim, start..start + size).ok_or_else(refused)?,
            x,
            mode: Mode::Copy,
        };
        moved.plan(caps, &mut dispatches).ok_or_else(refused)?;
        start += size;
    }
    Ok(dispatches)
}
