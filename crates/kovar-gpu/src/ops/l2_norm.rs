//! Euclidean normalisation.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{Split, per, plan_rows, refuse_rows};
use super::{Entry, Planned, no_kernel, reduce};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("l2_norm", 2);

pub(super) static ENTRY: Entry = Entry::floats(refuse_rows, plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let Op::L2Norm(op) = node.op() else {
        return Err(no_kernel(resolver.shared, node));
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    plan_rows(resolver, node, &operands, 0, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let split = Split::of_rows(x.0)?;
        let sums = reduce::chunk_sums(rows, split, x, true, dispatches)?;
        let params = split.params(rows).view(y.1).view(x.1).f32(op.eps);
        let operands = vec![y.0.clone(), x.0.clone(), sums];
        dispatches.push(rows.dispatch(&KERNEL, split, params, operands, &[per(y, split.n)]));
        Some(())
    })
}
