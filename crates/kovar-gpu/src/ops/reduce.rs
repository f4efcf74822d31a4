//! Sums and means over the last dimension.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, ReduceKind};

use super::rows::{Rows, Split, dtypes, features, refuse_rows, rows};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel};
use crate::program::Resolver;
use crate::view::{Operand, View};

static KERNEL: Kernel = Kernel {
    file: "reduce",
    entry: "reduce",
    bindings: &[Access::Write, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: |caps, node| match kind(node.op()) {
        Some(_) => refuse_rows(caps, node),
        None => Some(super::unknown(node)),
    },
    plan,
};

fn kind(op: &Op) -> Option<ReduceKind> {
    match op {
        Op::Reduce(op) if matches!(op.kind, ReduceKind::Sum | ReduceKind::Mean) => Some(op.kind),
        _ => None,
    }
}

/// A tensor of rows with its view.
type Window<'a> = (&'a Operand, View);

/// The dispatch that sums the chunks of rows of `x`, divided by `divisor`, into rows of `out`.
fn dispatch(
    rows: &Rows,
    split: Split,
    (out, out_view): Window<'_>,
    (x, x_view): Window<'_>,
    divisor: f32,
    squared: bool,
) -> Dispatch {
    let operands = vec![out.clone(), x.clone()];
    let params = split.params(rows).view(out_view).view(x_view);
    Dispatch {
        kernel: &KERNEL,
        features: features(out),
        constants: dtypes(&operands),
        params: params.f32(divisor).u32(squared.into()).finish(),
        operands,
        workgroups: split.workgroups(rows),
    }
}

/// Leaves the sum of each chunk of rows of `x`, or of its squares, in scratch memory, which it
/// returns too.
pub(super) fn chunk_sums(
    rows: &Rows,
    split: Split,
    x: Window<'_>,
    squared: bool,
) -> Option<(Dispatch, Operand)> {
    let sums = rows.scratch(split.chunks)?;
    let view = rows.scratch_view(split.chunks);
    let dispatch = dispatch(rows, split, (&sums, view), x, 1.0, squared);
    Some((dispatch, sums))
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let n = u32::try_from(x.layout.dims().from_end(0)).map_err(|_| refused())?;
    let divisor = match (kind(node.op()), n) {
        (Some(ReduceKind::Mean), 0) => f32::NAN,
        (Some(ReduceKind::Mean), n) => n as f32,
        _ => 1.0,
    };
    // No element of an empty operand is read, but a binding must lie within its buffer.
    let x = if n == 0 { y.clone() } else { x };
    let caps = resolver.shared.device.caps();
    let plan = || {
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[y, x], 0)? {
            let ([y, x], [y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
                return None;
            };
            let (y, x) = ((y, *y_view), (x, *x_view));
            let split = Split::of(n);
            if !split.is_cut() {
                dispatches.push(dispatch(&rows, split, y, x, divisor, false));
                continue;
            }
            let (first, sums) = chunk_sums(&rows, split, x, false)?;
            let sums = (&sums, rows.scratch_view(split.chunks));
            let rest = Split::whole(split.chunks);
            dispatches.extend([first, dispatch(&rows, rest, y, sums, divisor, false)]);
        }
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}
