//! Sums and means over the last dimension.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, ReduceKind};

use super::rows::{Rows, Split, Window, plan_rows, refuse_rows};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Dispatch, Kernel};
use crate::program::Resolver;
use crate::view::Operand;

static KERNEL: Kernel = Kernel::new("reduce", 1);

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

/// The dispatch that sums the chunks of rows of `x`, divided by `divisor`, into rows of `out`.
fn dispatch(
    rows: &Rows,
    split: Split,
    out: Window<'_>,
    x: Window<'_>,
    divisor: f32,
    squared: bool,
) -> Dispatch {
    let params = split.params(rows).view(out.1).view(x.1);
    let params = params.f32(divisor).u32(squared.into());
    let operands = vec![out.0.clone(), x.0.clone()];
    rows.dispatch(&KERNEL, split, params, operands, &[])
}

/// Scratch memory with the sum of each chunk of rows of `x`, or of its squares, after appending the
/// dispatch that writes it. For rows that are not cut, `x`, to be bound in its place.
pub(super) fn chunk_sums(
    rows: &Rows,
    split: Split,
    x: Window<'_>,
    squared: bool,
    dispatches: &mut Vec<Dispatch>,
) -> Option<Operand> {
    if !split.is_cut() {
        return Some(x.0.clone());
    }
    let sums = rows.scratch(split.chunks)?;
    let out = (&sums, rows.scratch_view(split.chunks));
    dispatches.push(dispatch(rows, split, out, x, 1.0, squared));
    Some(sums)
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
    plan_rows(resolver, node, &[y, x], 0, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let split = Split::of(n);
        if !split.is_cut() {
            dispatches.push(dispatch(rows, split, y, x, divisor, false));
            return Some(());
        }
        let sums = chunk_sums(rows, split, x, false, dispatches)?;
        let sums = (&sums, rows.scratch_view(split.chunks));
        let rest = Split::whole(split.chunks);
        dispatches.push(dispatch(rows, rest, y, sums, divisor, false));
        Some(())
    })
}
