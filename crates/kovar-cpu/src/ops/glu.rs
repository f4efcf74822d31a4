//! Gated activations.

use kovar_core::NodeRef;
use kovar_core::ops::{GluKind, Op};

use super::binary::{Body, compile_with};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if body_of(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    compile,
};

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let body = body_of(node.op()).ok_or_else(|| malformed(resolver, node, "gate"))?;
    compile_with(resolver, node, body(resolver.shared.vector))
}

pub(super) fn body_of(op: &Op) -> Option<Body> {
    let Op::Glu(op) = op else { return None };
    Some(match op.kind {
        GluKind::Swiglu => |kernels| kernels.swiglu,
        GluKind::Geglu => |kernels| kernels.geglu,
        GluKind::Reglu => |kernels| kernels.reglu,
        _ => return None,
    })
}
