//! Layer normalisation. Long rows are groups of channels of one element.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::group_norm::{Affine, Groups};
use super::rows::{Split, per, plan_rows, refuse_rows};
use super::{Entry, Planned, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("layer_norm", 3);

pub(super) static ENTRY: Entry = Entry::floats(refuse_rows, plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::LayerNorm(op) = node.op() else {
        return Err(refused());
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let affine = Affine::of(resolver, node, op.eps)?.ok_or_else(refused)?;
    plan_rows(resolver, node, &operands, 0, |rows, dispatches| {
        let [y, x] = rows.pair()?;
        let split = Split::of_rows(x.0)?;
        if split.is_cut() {
            let [a, b, c] = rows.outer;
            let groups = Groups {
                y: y.0.clone(),
                x: x.0.clone(),
                sizes: [a, b, c, split.n],
                within: [1; 4],
                views: [(y.1, [0; 4]), (x.1, [0; 4])],
                channels: [0, 0],
            };
            dispatches.extend(groups.plan(&affine)?);
            return Some(());
        }
        let params = affine.params(split.params(rows).view(y.1).view(x.1));
        let [weight, bias] = affine.operands(x.0);
        let operands = vec![y.0.clone(), x.0.clone(), weight, bias];
        dispatches.push(rows.dispatch(&KERNEL, split, params, operands, &[per(y, split.n)]));
        Some(())
    })
}
