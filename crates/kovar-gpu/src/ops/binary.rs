//! Elementwise operations on two operands.

use kovar_core::NodeRef;
use kovar_core::ops::{BinaryKind, Op};

use super::{Entry, FLOATS, Planned, elementwise, no_kernel};
use crate::kernel::{Access, Kernel};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel {
    file: "binary",
    entry: "binary",
    bindings: &[Access::Write, Access::Read, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if kind(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

/// The number of a kind in the kernel.
fn kind(op: &Op) -> Option<u32> {
    let Op::Binary(op) = op else { return None };
    Some(match op.kind {
        BinaryKind::Add => 0,
        BinaryKind::Sub => 1,
        BinaryKind::Mul => 2,
        BinaryKind::Div => 3,
        _ => return None,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let kind = kind(node.op()).ok_or_else(|| no_kernel(resolver.shared, node))?;
    of_kind(resolver, node, kind)
}

/// The kernel of a kind from the node's two operands, the second broadcast to the result's dims.
pub(super) fn of_kind(resolver: &Resolver<'_>, node: NodeRef<'_>, kind: u32) -> Planned {
    let (out, a) = (resolver.output(node)?, resolver.input(node, 0)?);
    let b = resolver.input(node, 1)?;
    let refused = || no_kernel(resolver.shared, node);
    let layout = b.layout.broadcast_to(*out.layout.dims());
    let b = b.with_layout(layout.ok_or_else(refused)?);
    let caps = resolver.shared.device.caps();
    elementwise::plan(caps, &KERNEL, &[out, a, b], &[("KIND", kind)], [0.0; 4]).ok_or_else(refused)
}
