//! Copies of a tensor side by side.

use kovar_core::NodeRef;
use kovar_core::ops::dtypes::PLAIN;

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
    let repeated = Rearrangement {
        out: resolver.output(node)?,
        x: resolver.input(node, 0)?,
        mode: Mode::Repeat,
        before: Vec::new(),
        fill: [0; 2],
    };
    let mut dispatches = Vec::new();
    let planned = repeated.plan(resolver.shared.device.caps(), &mut dispatches);
    planned.ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}
