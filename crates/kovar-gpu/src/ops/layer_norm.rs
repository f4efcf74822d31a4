//! Layer normalisation. Long rows are groups of channels of one element.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::group_norm::{Factors, Groups};
use super::rows::{Split, dtypes, features, per, refuse_rows, rows};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel {
    file: "layer_norm",
    entry: "layer_norm",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: refuse_rows,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::LayerNorm(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let factors = (1..node.n_inputs()).map(|i| resolver.input(node, i));
    let factors = factors.collect::<Result<Vec<_>, _>>()?;
    let caps = resolver.shared.device.caps();
    let plan = || {
        let split = Split::of(u32::try_from(x.layout.dims().from_end(0)).ok()?);
        let factors = Factors::of(caps, &factors, op.eps)?;
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[y, x], 0)? {
            let ([y, x], [y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
                return None;
            };
            let [a, b, c] = rows.outer;
            if split.is_cut() {
                let groups = Groups {
                    y: y.clone(),
                    x: x.clone(),
                    sizes: [a, b, c, split.n],
                    within: [1; 4],
                    views: [(*y_view, [0; 4]), (*x_view, [0; 4])],
                    channels: [0, 0],
                };
                dispatches.extend(groups.plan(&factors)?);
                continue;
            }
            let [weight, bias] = factors.operands(x);
            let operands = vec![y.clone(), x.clone(), weight, bias];
            let mut constants = dtypes(&operands);
            constants.push(("PER", per(y, y_view, split.n)));
            let params = split.params(&rows).view(*y_view).view(*x_view);
            let params = factors.flags(factors.views(params).f32(op.eps));
            dispatches.push(Dispatch {
                kernel: &KERNEL,
                features: features(y),
                constants,
                params: params.finish(),
                operands,
                workgroups: split.workgroups(&rows),
            });
        }
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}
