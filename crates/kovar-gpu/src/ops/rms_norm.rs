//! Root mean square normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{Split, dtypes, features, per, refuse_rows, rows};
use super::{Entry, FLOATS, Planned, no_kernel, reduce};
use crate::kernel::{Access, Dispatch, Kernel};
use crate::program::Resolver;
use crate::view::View;

static KERNEL: Kernel = Kernel {
    file: "rms_norm",
    entry: "rms_norm",
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
    let Op::RmsNorm(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let weight = (node.n_inputs() > 1).then(|| resolver.input(node, 1));
    let weight = weight.transpose()?;
    let caps = resolver.shared.device.caps();
    let plan = || {
        let split = Split::of(u32::try_from(x.layout.dims().from_end(0)).ok()?);
        let weight_view = match &weight {
            Some(weight) => weight.vector(caps)?,
            None => View::default(),
        };
        let mut dispatches = Vec::new();
        for rows in rows(caps, &[y, x], 0)? {
            let ([y, x], [y_view, x_view]) = (&rows.operands[..], &rows.views[..]) else {
                return None;
            };
            // What isn't there is bound to something.
            let factors = weight.clone().unwrap_or_else(|| x.clone());
            let mut operands = vec![y.clone(), x.clone(), factors, x.clone()];
            if split.is_cut() {
                let (first, sums) = reduce::chunk_sums(&rows, split, (x, *x_view), true)?;
                dispatches.push(first);
                operands[3] = sums;
            }
            let mut constants = dtypes(&operands);
            constants.push(("PER", per(y, y_view, split.n)));
            let params = split.params(&rows).view(*y_view).view(*x_view);
            let params = params
                .view(weight_view)
                .f32(op.eps)
                .u32(weight.is_some().into());
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
