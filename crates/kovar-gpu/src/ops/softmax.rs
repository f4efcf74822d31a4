//! Softmax over the last dimension.

use kovar_core::NodeRef;
use kovar_core::ops::Op;
use kovar_core::ops::dtypes::MASKS;

use super::rows::{Split, dtypes, features, per, refuse_rows, rows};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel};
use crate::program::Resolver;

static PARTS: Kernel = Kernel {
    file: "softmax",
    entry: "softmax_parts",
    bindings: &[Access::Write, Access::Read, Access::Read],
};

static KERNEL: Kernel = Kernel {
    file: "softmax",
    entry: "softmax",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Read],
};

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
    let mask = match masked {
        true => {
            let mask = resolver.input(node, 1)?;
            let layout = mask.layout.broadcast_to(dims).ok_or_else(refused)?;
            mask.with_layout(layout)
        }
        false => x.clone(),
    };
    // With slopes, a row's head must be known.
    let (apart, power) = match (op.max_bias, dims.from_end(2).checked_ilog2()) {
        (0.0, _) | (_, None) => (0, 0),
        (_, Some(log)) => (2, 1u32.checked_shl(log).ok_or_else(refused)?),
    };
    let slope_step = op.max_bias / power.max(1) as f32;
    let caps = resolver.shared.device.caps();
    let plan = || {
        let split = Split::of(u32::try_from(dims.from_end(0)).ok()?);
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[y, x, mask], apart)? {
            let ([y, x, mask], &[y_view, x_view, mask_view]) =
                (&rows.operands[..], &rows.views[..])
            else {
                return None;
            };
            let first_head = dims.rank().checked_sub(3).map_or(0, |at| rows.start[at]);
            let params = split.params(&rows).view(y_view).view(x_view);
            let params = params.view(mask_view).f32(op.scale).u32(masked.into());
            let params = params.u32(u32::try_from(first_head).ok()?).u32(power);
            let params = params.f32(slope_step).finish();
            let mut operands = vec![y.clone(), x.clone(), mask.clone(), x.clone()];
            let workgroups = split.workgroups(&rows);
            if split.is_cut() {
                let parts = rows.scratch(split.chunks.checked_mul(2)?)?;
                let first = vec![parts.clone(), x.clone(), mask.clone()];
                dispatches.push(Dispatch {
                    kernel: &PARTS,
                    features: features(&parts),
                    constants: dtypes(&first),
                    params: params.clone(),
                    operands: first,
                    workgroups,
                });
                operands[3] = parts;
            }
            let mut constants = dtypes(&operands);
            constants.push(("PER", per(y, &y_view, split.n)));
            dispatches.push(Dispatch {
                kernel: &KERNEL,
                features: features(y),
                constants,
                params,
                operands,
                workgroups,
            });
        }
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}
