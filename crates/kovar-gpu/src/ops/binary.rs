//! Elementwise operations on two operands, gated activations among them.

use kovar_core::NodeRef;
use kovar_core::ops::{BinaryKind, GluKind, Op};

use super::{Entry, FLOATS, Planned, elementwise, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("binary", 2);

pub(super) const ENTRY: Entry = Entry {
    operands: |op, _| if kind(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

/// The number of a kind in the kernel.
fn kind(op: &Op) -> Option<u32> {
    Some(match op {
        Op::Binary(op) => match op.kind {
            BinaryKind::Add => 0,
            BinaryKind::Sub => 1,
            BinaryKind::Mul => 2,
            BinaryKind::Div => 3,
            _ => return None,
        },
        Op::Glu(op) => match op.kind {
            GluKind::Swiglu => 4,
            GluKind::Geglu => 5,
            GluKind::Reglu => 6,
            _ => return None,
        },
        _ => return None,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let kind = kind(node.op()).ok_or_else(refused)?;
    let (out, a) = (resolver.output(node)?, resolver.input(node, 0)?);
    // The second operand is broadcast to the result's dims.
    let b = resolver.input(node, 1)?;
    let layout = b.layout.broadcast_to(*out.layout.dims());
    let b = b.with_layout(layout.ok_or_else(refused)?);
    let caps = resolver.shared.device.caps();
    elementwise::plan(caps, &KERNEL, &[out, a, b], &[("KIND", kind)], [0.0; 4]).ok_or_else(refused)
}
