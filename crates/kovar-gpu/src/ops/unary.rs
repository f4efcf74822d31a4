//! Elementwise operations on one operand.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UnaryKind};

use super::{Entry, FLOATS, Planned, elementwise, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("unary", 1);

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if kind(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

/// The kernel's number for multiplication by the first attribute.
pub(super) const SCALE: u32 = 19;
/// The kernel's number for the identity, which casts.
pub(super) const CAST: u32 = 20;

/// The number of a kind in the kernel, and its attributes.
fn kind(op: &Op) -> Option<(u32, [f32; 4])> {
    let Op::Unary(op) = op else { return None };
    let plain = |kind| (kind, [0.0; 4]);
    Some(match op.kind {
        UnaryKind::Neg => plain(0),
        UnaryKind::Abs => plain(1),
        UnaryKind::Sqr => plain(2),
        UnaryKind::Sqrt => plain(3),
        UnaryKind::Exp => plain(4),
        UnaryKind::Log => plain(5),
        UnaryKind::Sin => plain(6),
        UnaryKind::Cos => plain(7),
        UnaryKind::Tanh => plain(8),
        UnaryKind::Sigmoid => plain(9),
        UnaryKind::Silu => plain(10),
        UnaryKind::Gelu => plain(11),
        UnaryKind::GeluTanh => plain(12),
        UnaryKind::GeluQuick => plain(13),
        UnaryKind::Relu => plain(14),
        UnaryKind::ReluSqr => plain(15),
        UnaryKind::LeakyRelu { slope } => (16, [slope, 0.0, 0.0, 0.0]),
        UnaryKind::Softplus => plain(17),
        UnaryKind::Clamp { min, max } => (18, [min, max, 0.0, 0.0]),
        _ => return None,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let (kind, extra) = kind(node.op()).ok_or_else(refused)?;
    of_kind(resolver, node, kind, extra)
}

/// Plans the kernel of a kind from the node's first operand to its result.
pub(super) fn of_kind(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    kind: u32,
    extra: [f32; 4],
) -> Planned {
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let caps = resolver.shared.device.caps();
    elementwise::plan(caps, &KERNEL, &operands, &[("KIND", kind)], extra)
        .ok_or_else(|| no_kernel(resolver.shared, node))
}
