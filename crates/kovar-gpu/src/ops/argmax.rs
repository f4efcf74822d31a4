//! The index of the greatest element.

use kovar_core::{Dims, Layout, NodeRef};

use super::rows::{Rows, Split, Window, plan_rows, refuse_rows};
use super::{Entry, FLOATS, I32, Planned, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;
use crate::view::Operand;

static KERNEL: Kernel = Kernel::new("argmax", 1);

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

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let y = with_rows(&y).ok_or_else(|| no_kernel(resolver.shared, node))?;
    let dispatch = |rows: &Rows, split: Split, y: Window<'_>, x: Window<'_>, merges: bool| {
        let params = split.params(rows).view(y.1).view(x.1);
        let operands = vec![y.0.clone(), x.0.clone()];
        rows.dispatch(
            &KERNEL,
            split,
            params,
            operands,
            &[("MERGES", merges.into())],
        )
    };
    plan_rows(resolver, node, &[y, x], 0, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let split = Split::of_rows(x.0)?;
        if !split.is_cut() {
            dispatches.push(dispatch(rows, split, y, x, false));
            return Some(());
        }
        let best = rows.scratch(split.chunks.checked_mul(2)?)?;
        let best = (&best, rows.scratch_view(split.chunks));
        dispatches.push(dispatch(rows, split, best, x, false));
        dispatches.push(dispatch(rows, Split::whole(split.chunks), y, best, true));
        Some(())
    })
}
