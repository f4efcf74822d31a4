//! Rows as symmetric 8-bit codes.

use kovar_core::{DType, Dims, Layout, NodeRef};

use super::pieces::{per_word, pieces};
use super::{Entry, F32, FLOATS, Planned, WORKGROUP, code, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::view::{Operand, four};

static KERNEL: Kernel = Kernel::new("quantize_rows", 2);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { FLOATS } else { F32 },
    result: |_| &[DType::I8],
    refuses: |_, _| None,
    plan,
};

/// Codes in a word.
const CODES: u32 = 4;

/// The scales broadcast to the dims of the elements.
fn broadcast(scales: &Operand, dims: &Dims) -> Option<Operand> {
    let mut strides = scales.layout.strides().to_vec();
    strides.push(0);
    let layout = Layout::strided(*dims, Dims::new(&strides)?, scales.layout.offset())?;
    Some(scales.with_layout(layout))
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let dims = *out.layout.dims();
    let scales = broadcast(&resolver.input(node, 1)?, &dims).ok_or_else(refused)?;
    let caps = resolver.shared.device.caps();
    let mut dispatches = Vec::new();
    for piece in pieces(caps, &[out, x, scales], dims.rank(), 4).ok_or_else(refused)? {
        let views = piece.views(caps);
        let elements = piece.collapsed.dims.elements().ok_or_else(refused)?;
        let (dims, out) = (four(&piece.collapsed.dims, 1), views.first());
        let per = per_word(out.ok_or_else(refused)?, dims[3], CODES);
        let mut params = Params::new().vec4(dims);
        for view in &views {
            params = params.view(*view);
        }
        let invocations = u32::try_from(elements / per as usize).map_err(|_| refused())?;
        let x = piece.operands.get(1).ok_or_else(refused)?;
        dispatches.push(Dispatch {
            kernel: &KERNEL,
            features: Features::NARROW,
            constants: vec![
                ("A_DTYPE", code(x.dtype)),
                ("SHIFT", 2),
                ("PER", per),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: piece.operands,
            workgroups: invocations.div_ceil(WORKGROUP),
        });
    }
    Ok(dispatches)
}
