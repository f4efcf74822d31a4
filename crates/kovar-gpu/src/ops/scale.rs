//! Multiplication by a constant.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::unary::{SCALE, of_kind};
use super::{Entry, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry::floats(|_, _| None, plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let Op::Scale(op) = node.op() else {
        return Err(no_kernel(resolver.shared, node));
    };
    of_kind(resolver, node, SCALE, [op.scale, 0.0, 0.0, 0.0])
}
