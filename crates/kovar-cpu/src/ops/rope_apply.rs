//! Rotary position embedding by matrices, with attention's permutation; the kernel is that of
//! [`rope`].

use kovar_core::NodeRef;
use kovar_core::ops::{Op, Pairing};

use super::{Compiled, Entry, F32, FLOATS, malformed, rope};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| FLOATS,
    compile,
};

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let Op::RopeApply(op) = node.op() else {
        return Err(malformed());
    };
    let y = resolver.write(node)?;
    // With heads and tokens of the result swapped back, a token's heads are consecutive rows, so
    // its matrices stay in a cache.
    let swapped = y.layout.permute(&[0, 2, 1, 3]).ok_or_else(malformed)?;
    let kernels = resolver.shared.vector;
    let turn = match op.pairing {
        Pairing::Normal => kernels.apply_normal,
        Pairing::Neox => kernels.apply_neox,
    };
    let table = rope::Table::new(&resolver.input(node, 1)?, 2);
    rope::compile_with(resolver, node, y.with_layout(swapped), table, turn)
}
