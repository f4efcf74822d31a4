//! Elementwise operations on one operand.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UnaryKind};

use super::{Entry, FLOATS, Planned, elementwise, no_kernel};
use crate::kernel::{Access, Kernel};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel {
    file: "unary",
    entry: "unary",
    bindings: &[Access::Write, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if kind(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

/// The number of a kind in the kernel, and its attributes.
fn kind(op: &Op) -> Option<(u32, [f32; 4])> {
    let Op::Unary(op) = op else { return None };
    let plain = |kind| (kind, [0.0; 4]);
    Some(match op.kind {
        UnaryKind::Neg => plain(0),
        UnaryKind::Abs => plain(1),
        UnaryKind::Sqr => plain(2),
        UnaryKind::Relu => plain(3),
        _ => return None,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let refused = || no_kernel(resolver.shared, node);
    let (kind, extra) = kind(node.op()).ok_or_else(refused)?;
    let caps = resolver.shared.device.caps();
    elementwise::plan(caps, &KERNEL, &operands, &[("KIND", kind)], extra).ok_or_else(refused)
}
