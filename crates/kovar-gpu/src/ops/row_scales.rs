//! Scales for quantising rows.

use kovar_core::NodeRef;
use kovar_core::backend::Reason;

use super::pieces::pieces;
use super::{Entry, F32, FLOATS, Planned, code, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::four;

static KERNEL: Kernel = Kernel::new("row_scales", 1);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| F32,
    refuses: refused,
    plan,
};

/// A row must lie within a binding.
fn refused(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    let x = node.input(0)?;
    let last = x.dims().from_end(0).saturating_sub(1);
    let span = (last as u64).saturating_mul(x.layout.stride_from_end(0) as u64);
    let bytes = span.saturating_mul(x.dtype.block_bytes() as u64);
    (bytes.saturating_add(2 * caps.binding_alignment) > caps.max_binding_bytes).then(|| {
        Reason::Layout {
            op: node.op().name(),
            operand: "x",
        }
    })
}

/// Invocations of a workgroup.
const WORKGROUP: usize = 256;

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let rank = out.layout.dims().rank();
    let n = x.layout.dims().from_end(0);
    let mut dispatches = Vec::new();
    // Empty rows have nothing to bind. The result is bound in their place.
    let x = if n == 0 { out.clone() } else { x };
    for piece in pieces(caps, &[out, x], rank, 4).ok_or_else(refused)? {
        let views = piece.views(caps);
        let ([_, x], [out_view, x_view]) = (piece.operands.as_slice(), views.as_slice()) else {
            return Err(refused());
        };
        let lanes = if n <= 128 { 32 } else { WORKGROUP };
        let rows = piece.collapsed.dims.elements().ok_or_else(refused)?;
        let number = |n: usize| u32::try_from(n).map_err(|_| refused());
        let params = Params::new()
            .vec4(four(&piece.collapsed.dims, 1))
            .view(*out_view)
            .view(*x_view)
            .vec4([number(n)?, number(x.layout.stride_from_end(0))?, 0, 0]);
        dispatches.push(Dispatch {
            kernel: &KERNEL,
            features: Features::NONE,
            constants: vec![("A_DTYPE", code(x.dtype)), ("LANES", lanes as u32)],
            params: params.finish(),
            operands: piece.operands,
            workgroups: number(rows.div_ceil(WORKGROUP / lanes))?,
        });
    }
    Ok(dispatches)
}
