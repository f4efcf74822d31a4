//! Gated activations.

use kovar_core::NodeRef;
use kovar_core::ops::{GluKind, Op};

use super::binary::of_kind;
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if kind(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

/// The number of a kind in the kernel of elementwise operations on two operands.
fn kind(op: &Op) -> Option<u32> {
    let Op::Glu(op) = op else { return None };
    Some(match op.kind {
        GluKind::Swiglu => 4,
        GluKind::Geglu => 5,
        GluKind::Reglu => 6,
        _ => return None,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let kind = kind(node.op()).ok_or_else(|| no_kernel(resolver.shared, node))?;
    of_kind(resolver, node, kind)
}
