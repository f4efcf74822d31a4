//! Softmax over the last dimension.

use kovar_core::NodeRef;
use kovar_core::ops::Op;
use kovar_core::ops::dtypes::MASKS;

use super::rows::{Split, per, plan_rows, refuse_rows};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static CHUNKS: Kernel = Kernel::new("softmax", 2).entry("softmax_chunks");

static KERNEL: Kernel = Kernel::new("softmax", 3);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { MASKS },
    result: |_| FLOATS,
    refuses: refuse_rows,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Softmax(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let dims = *x.layout.dims();
    let masked = node.n_inputs() > 1;
    // `x` is bound in place of an absent mask.
    let mask = if masked {
        let mask = resolver.input(node, 1)?;
        mask.with_layout(mask.layout.broadcast_to(dims).ok_or_else(refused)?)
    } else {
        x.clone()
    };
    // With slopes, a row's head must be known.
    let (apart, power) = match (op.max_bias, dims.from_end(2).checked_ilog2()) {
        (0.0, _) | (_, None) => (0, 0),
        (_, Some(log)) => (2, 1u32.checked_shl(log).ok_or_else(refused)?),
    };
    let slope_step = op.max_bias / power.max(1) as f32;
    plan_rows(resolver, node, &[y, x, mask], apart, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let (mask, &mask_view) = (rows.operands.get(2)?, rows.views.get(2)?);
        let split = Split::of_rows(x.0)?;
        let first_head = dims.rank().checked_sub(3).map_or(0, |at| rows.start[at]);
        let first_head = u32::try_from(first_head).ok()?;
        let params = || {
            let params = split.params(rows).view(y.1).view(x.1).view(mask_view);
            let params = params.f32(op.scale).u32(masked.into());
            params.u32(first_head).u32(power).f32(slope_step)
        };
        let mut chunks = x.0.clone();
        if split.is_cut() {
            chunks = rows.scratch(split.chunks.checked_mul(2)?)?;
            let operands = vec![chunks.clone(), x.0.clone(), mask.clone()];
            dispatches.push(rows.dispatch(&CHUNKS, split, params(), operands, &[]));
        }
        let operands = vec![y.0.clone(), x.0.clone(), mask.clone(), chunks];
        dispatches.push(rows.dispatch(&KERNEL, split, params(), operands, &[per(y, split.n)]));
        Some(())
    })
}
