//! Padding with a constant.

use kovar_core::ops::Op;
use kovar_core::ops::dtypes::PLAIN;
use kovar_core::{NodeRef, plain};

use super::rearrange::{Mode, Rearrangement};
use super::{Entry, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Pad(op) = node.op() else {
        return Err(refused());
    };
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let mut bytes = [0; 8];
    let element = bytes.get_mut(..out.dtype.block_bytes());
    plain::encode_f64(
        out.dtype,
        &[f64::from(op.value)],
        element.ok_or_else(refused)?,
    )
    .map_err(|_| refused())?;
    let bits = u64::from_le_bytes(bytes);
    let padded = Rearrangement {
        out,
        x,
        mode: Mode::Pad,
        before: op.before.to_vec(),
        fill: [bits as u32, (bits >> 32) as u32],
    };
    let mut dispatches = Vec::new();
    let caps = resolver.shared.device.caps();
    padded.plan(caps, &mut dispatches).ok_or_else(refused)?;
    Ok(dispatches)
}
