//! Rows of a table by index.

use kovar_core::NodeRef;
use kovar_core::ops::dtypes::PLAIN;

use super::pieces::{fits_anywhere, pieces, slice};
use super::rearrange::unit;
use super::{Entry, I32, Planned, WORKGROUP, cast, narrow, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::{Operand, four};

static KERNEL: Kernel = Kernel::new("get_rows", 2);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { PLAIN } else { I32 },
    result: |_| PLAIN,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let (out, table) = (resolver.output(node)?, resolver.input(node, 0)?);
    let ids = resolver.input(node, 1)?;
    let mut dispatches = Vec::new();
    let caps = resolver.shared.device.caps();
    lookups(caps, &out, &ids, &table, &mut dispatches)
        .ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}

/// Appends the dispatches for all columns, or for ranges of them if a single row is too large.
fn lookups(
    caps: &Caps,
    out: &Operand,
    ids: &Operand,
    table: &Operand,
    all: &mut Vec<Dispatch>,
) -> Option<()> {
    let rank = ids.layout.dims().rank();
    let columns = out.layout.dims().from_end(0);
    let row = |operand: &Operand, dims: usize| {
        let first = (0..dims).try_fold(operand.layout, |layout, dim| {
            layout.slice(dim, 0..layout.dims()[dim].min(1))
        })?;
        Some(fits_anywhere(caps, &operand.with_layout(first)))
    };
    if columns > 1 && !(row(out, rank)? && row(table, 1)?) {
        for range in [0..columns / 2, columns / 2..columns] {
            let piece = |operand: &Operand, dim| slice(operand, dim, range.clone());
            lookups(caps, &piece(out, rank)?, ids, &piece(table, 1)?, all)?;
        }
        return Some(());
    }
    let rows = *table.layout.dims().first()?;
    let mut chunk = rows.max(1);
    let piece =
        |start: usize, len: usize| slice(table, 0, start.min(rows)..(start + len).min(rows));
    while chunk > 1 && !fits_anywhere(caps, &piece(0, chunk)?) {
        chunk = chunk.div_ceil(2);
    }
    for start in (0..rows.max(1)).step_by(chunk) {
        lookup(caps, out, ids, &piece(start, chunk)?, [start, rows], all)?;
    }
    Some(())
}

/// Appends the dispatches for a range of a table's rows. The table has `rows` rows, and `table` has
/// those from `first` on.
fn lookup(
    caps: &Caps,
    out: &Operand,
    ids: &Operand,
    table: &Operand,
    [first, rows]: [usize; 2],
    all: &mut Vec<Dispatch>,
) -> Option<()> {
    let operands = [out.clone(), ids.clone()];
    for piece in pieces(caps, &operands, ids.layout.dims().rank(), 4)? {
        let views = piece.views(caps);
        let ([out, ids], [out_view, ids_view]) = (piece.operands.as_slice(), views.as_slice())
        else {
            return None;
        };
        let columns = out.layout.dims().from_end(0);
        let (shift, split) = unit(out.dtype)?;
        let stride = out.layout.stride_from_end(0);
        let per = 1usize << shift;
        let steps = out_view.strides.iter().chain([&out_view.offset]);
        let words = stride == 1
            && columns.is_multiple_of(per)
            && steps
                .into_iter()
                .all(|&step| (step as usize).is_multiple_of(per));
        let per = if words { per } else { 1 };
        let number = |n: usize| u32::try_from(n).ok();
        // An empty table is never read. The result is bound in its place.
        let bound = if table.layout.elements() == 0 {
            out
        } else {
            table
        };
        let params = Params::new()
            .vec4(four(&piece.collapsed.dims, 1))
            .view(*out_view)
            .view(table.view(table.layout.strides(), caps.binding_alignment))
            .view(*ids_view)
            .vec4([
                number(first)?,
                number(*table.layout.dims().first()?)?,
                number(rows)?,
                0,
            ])
            .vec4([
                number(columns)?,
                number(stride)?,
                number(table.layout.stride_from_end(0))?,
                0,
            ]);
        let invocations = (piece.collapsed.dims.elements()? * columns / per) << split;
        all.push(Dispatch {
            kernel: &KERNEL,
            features: narrow(shift > 0),
            constants: vec![
                ("DECODED", u32::from(table.dtype != out.dtype)),
                ("FROM", cast::number(table.dtype)?),
                ("SHIFT", shift),
                ("SPLIT", split),
                ("PER", per as u32),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: vec![out.clone(), bound.clone(), ids.clone()],
            workgroups: number(invocations)?.div_ceil(WORKGROUP),
        });
    }
    Some(())
}
