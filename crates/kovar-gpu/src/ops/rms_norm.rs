//! Root mean square normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{Split, per, plan_rows, refuse_rows};
use super::{Entry, Planned, no_kernel, reduce};
use crate::kernel::Kernel;
use crate::program::Resolver;
use crate::view::View;

static KERNEL: Kernel = Kernel::new("rms_norm", 3);

pub(super) static ENTRY: Entry = Entry::floats(refuse_rows, plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let Op::RmsNorm(op) = node.op() else {
        return Err(no_kernel(resolver.shared, node));
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let weight = (node.n_inputs() > 1).then(|| resolver.input(node, 1));
    let weight = weight.transpose()?;
    let caps = resolver.shared.device.caps();
    plan_rows(resolver, node, &operands, 0, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let split = Split::of_rows(x.0)?;
        let weight_view = match &weight {
            Some(weight) => weight.vector(caps)?,
            None => View::default(),
        };
        let sums = reduce::chunk_sums(rows, split, x, true, dispatches)?;
        let params = split.params(rows).view(y.1).view(x.1).view(weight_view);
        let params = params.f32(op.eps).u32(weight.is_some().into());
        // `x` is bound in place of an absent weight.
        let weight = weight.as_ref().unwrap_or(x.0).clone();
        let operands = vec![y.0.clone(), x.0.clone(), sums, weight];
        dispatches.push(rows.dispatch(&KERNEL, split, params, operands, &[per(y, split.n)]));
        Some(())
    })
}
