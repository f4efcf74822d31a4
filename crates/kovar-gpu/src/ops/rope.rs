//! Rotary position embedding.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::{Entry, F32, FLOATS, Planned, no_kernel, turn};
use crate::kernel::{Access, Kernel};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel {
    file: "rope",
    entry: "rope",
    bindings: &[Access::Write, Access::Read, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| FLOATS,
    refuses: turn::refuses,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Rope(op) = node.op() else {
        return Err(refused());
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let table = resolver.input(node, 1)?;
    let caps = resolver.shared.device.caps();
    turn::plan(caps, &KERNEL, operands, &table, op.pairing).ok_or_else(refused)
}
