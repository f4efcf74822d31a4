//! The index of the greatest element.

use kovar_core::{Dims, Layout, NodeRef};

use super::rows::{Rows, Split, dtypes, refuse_rows, rows};
use super::{Entry, FLOATS, I32, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Features, Kernel};
use crate::program::Resolver;
use crate::view::{Operand, View};

static KERNEL: Kernel = Kernel {
    file: "argmax",
    entry: "argmax",
    bindings: &[Access::Write, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| I32,
    refuses: refuse_rows,
    plan,
};

/// The result as rows of one element.
fn with_rows(y: &Operand) -> Option<Operand> {
    let layout = &y.layout;
    let with = |sizes: &Dims| Dims::new(&[sizes, &[1][..]].concat());
    let (dims, strides) = (with(layout.dims())?, with(layout.strides())?);
    Some(y.with_layout(Layout::strided(dims, strides, layout.offset())?))
}

fn dispatch(
    rows: &Rows,
    split: Split,
    (y, y_view): (&Operand, View),
    (x, x_view): (&Operand, View),
    merges: bool,
) -> Dispatch {
    let operands = vec![y.clone(), x.clone()];
    let mut constants = dtypes(&operands);
    constants.push(("MERGES", merges.into()));
    Dispatch {
        kernel: &KERNEL,
        features: Features::SUBGROUPS,
        constants,
        params: split.params(rows).view(y_view).view(x_view).finish(),
        operands,
        workgroups: split.workgroups(rows),
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let plan = || {
        let split = Split::of(u32::try_from(x.layout.dims().from_end(0)).ok()?);
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[with_rows(&y)?, x], 0)? {
            let ([y, x], &[y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
                return None;
            };
            let (y, x) = ((y, y_view), (x, x_view));
            if !split.is_cut() {
                dispatches.push(dispatch(&rows, split, y, x, false));
                continue;
            }
            let best = rows.scratch(split.chunks.checked_mul(2)?)?;
            let best = (&best, rows.scratch_view(split.chunks));
            let rest = Split::whole(split.chunks);
            dispatches.push(dispatch(&rows, split, best, x, false));
            dispatches.push(dispatch(&rows, rest, y, best, true));
        }
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}
