//! Transposed convolution over two dimensions.

use kovar_core::NodeRef;
use kovar_core::ops::{ConvTranspose2d, Op};

use super::convolution::{self, Convolution};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: |caps, node| {
        let ConvTranspose2d {
            stride,
            padding,
            dilation,
            ..
        } = attributes(node)?;
        convolution::refuses(caps, node, [*stride, *padding, *dilation])
    },
    plan,
};

fn attributes<'g>(node: NodeRef<'g>) -> Option<&'g ConvTranspose2d> {
    match node.op() {
        Op::ConvTranspose2d(attributes) => Some(attributes),
        _ => None,
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let op = attributes(node).ok_or_else(refused)?;
    let out = resolver.output(node)?;
    let addend = match node.n_inputs() > 2 {
        true => {
            let bias = resolver.input(node, 2)?;
            Some(convolution::addend(bias, &out.layout).ok_or_else(refused)?)
        }
        false => None,
    };
    let convolution = Convolution {
        adjoint: true,
        stride: op.stride,
        padding: op.padding,
        dilation: op.dilation,
        groups: op.groups,
        precision: op.precision,
        x: resolver.input(node, 0)?,
        weight: resolver.input(node, 1)?,
        addend,
        out,
    };
    let caps = resolver.shared.device.caps();
    convolution::plan(caps, convolution).ok_or_else(refused)
}
