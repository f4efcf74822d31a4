//! Rotary position embedding: pairs of a head's elements times 2 x 2 matrices.

use kovar_core::backend::Reason;
use kovar_core::ops::{Op, Pairing};
use kovar_core::{DType, NodeRef};

use super::pieces::{fits, per_word};
use super::rows::{dtypes, refuse_large, rows};
use super::{Entry, F32, FLOATS, Planned, narrow, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::Operand;

static KERNEL: Kernel = Kernel::new("rope", 2);

pub(super) const ENTRY: Entry = Entry {
    operands: |_, i| if i == TABLE { F32 } else { FLOATS },
    result: |_| FLOATS,
    refuses,
    plan,
};

/// The operand index of the table.
const TABLE: usize = 1;
/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;

/// Refuses heads or tables that are too large for a binding.
pub(super) fn refuses(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    refuse_large(caps, node, |i, layout| {
        let outer = match i {
            TABLE => 0,
            _ => layout.dims().rank().saturating_sub(1),
        };
        (0..outer).try_fold(*layout, |layout, dim| layout.slice(dim, 0..1))
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Rope(op) = node.op() else {
        return Err(refused());
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let table = resolver.input(node, TABLE)?;
    let caps = resolver.shared.device.caps();
    rotations(caps, &KERNEL, operands, &table, op.pairing).ok_or_else(refused)
}

/// Dispatches of `kernel` for `y` and `x` of dims `[.., tokens, heads, head_dim]`. The table is
/// `[tokens, pairs, 2]`, of cosines and sines, or `[tokens, pairs, 2, 2]`.
pub(super) fn rotations(
    caps: &Caps,
    kernel: &'static Kernel,
    [y, x]: [Operand; 2],
    table: &Operand,
    pairing: Pairing,
) -> Option<Vec<Dispatch>> {
    let head_dim = u32::try_from(y.layout.dims().from_end(0)).ok()?;
    let token_dim = y.layout.dims().rank().checked_sub(3)?;
    let pairs = u32::try_from(*table.layout.dims().get(1)?).ok()?;
    let matrices = table.layout.dims().rank() == 4;
    let neighbours = pairing == Pairing::Normal;
    if !fits(caps, table) {
        return None;
    }
    let table_view = table.view(table.layout.strides(), caps.binding_alignment);
    let mut dispatches = Vec::new();
    for rows in rows(caps, &[y, x], 2)? {
        let ([y, x], &[y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
            return None;
        };
        let is_narrow = y.dtype != DType::F32;
        let whole_pairs = is_narrow && (neighbours || pairs.is_multiple_of(2));
        let per = per_word(&y_view, head_dim, if whole_pairs { 2 } else { 1 });
        let rotating = if neighbours { pairs } else { pairs / per };
        let units = rotating + (head_dim - 2 * pairs) / per;
        let [lead, tokens, heads] = rows.outer;
        let invocations = rows.count().checked_mul(units)?;
        let first_token = u32::try_from(rows.start[token_dim]).ok()?;
        let params = Params::new().vec4([lead, tokens, heads, units]);
        let params = params.view(y_view).view(x_view).view(table_view);
        // An empty table has no bytes to bind. It is not read.
        let table = if pairs == 0 { x } else { table };
        let operands = vec![y.clone(), x.clone(), table.clone()];
        let mut constants = dtypes(&operands);
        constants.extend([
            ("MATRICES", matrices.into()),
            ("NEIGHBOURS", neighbours.into()),
            ("PER", per),
        ]);
        dispatches.push(Dispatch {
            kernel,
            features: narrow(is_narrow),
            constants,
            params: params.u32(first_token).u32(pairs).finish(),
            operands,
            workgroups: invocations.div_ceil(WORKGROUP),
        });
    }
    Some(dispatches)
}
