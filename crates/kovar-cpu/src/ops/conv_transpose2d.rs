//! Transposed convolution over two dimensions.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::convolution::{self, Attributes, Geometry};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let Op::ConvTranspose2d(op) = node.op() else {
        return Err(malformed(resolver, node, "x"));
    };
    let axis = |i: usize| Geometry {
        stride: op.stride[i],
        padding: op.padding[i],
        dilation: op.dilation[i],
    };
    let attributes = Attributes {
        transposed: true,
        axes: [axis(0), axis(1)],
        groups: op.groups,
    };
    convolution::compile(resolver, node, &attributes)
}
