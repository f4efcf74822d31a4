//! Padding with a constant.

use kovar_core::ops::Op;
use kovar_core::{NodeRef, plain};

use super::rearrange::{self, Mode};
use super::{Entry, Planned, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry::plain(plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Pad(op) = node.op() else {
        return Err(refused());
    };
    let dtype = node.output().dtype;
    let mut bytes = [0; 8];
    let element = bytes.get_mut(..dtype.block_bytes());
    plain::encode_f64(dtype, &[f64::from(op.value)], element.ok_or_else(refused)?)
        .map_err(|_| refused())?;
    let bits = u64::from_le_bytes(bytes);
    let mode = Mode::Pad {
        before: op.before.to_vec(),
        fill: [bits as u32, (bits >> 32) as u32],
    };
    rearrange::plan(resolver, node, mode)
}
