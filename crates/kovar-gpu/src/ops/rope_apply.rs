//! Rotary position embedding by matrices. The result has heads before tokens, as attention reads
//! it.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rope::{self, rotations};
use super::{Entry, Planned, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("rope", 2).entry("rope_apply");

pub(super) static ENTRY: Entry = Entry {
    plan,
    ..rope::ENTRY
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::RopeApply(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let table = resolver.input(node, 1)?;
    // Tokens before heads, as in `x`.
    let swapped = y.layout.permute(&[0, 2, 1, 3]).ok_or_else(refused)?;
    let operands = [y.with_layout(swapped), x];
    let caps = resolver.shared.device.caps();
    rotations(caps, &KERNEL, operands, &table, op.pairing).ok_or_else(refused)
}
