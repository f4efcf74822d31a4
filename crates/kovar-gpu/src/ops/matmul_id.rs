//! Products with the weights of selected experts.

use kovar_core::backend::Reason;
use kovar_core::{Dims, Layout, NodeRef};

use super::pieces::slice;
use super::product::policy::{self, ExpertsChoice};
use super::product::{Matrices, variant, vector_constants};
use super::{Entry, F32, FACTORS, FLOATS, I32, Planned, code, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::Operand;

static TILED: Kernel = Kernel::new("matmul_id", 4);
static VECTOR: Kernel = Kernel::new("matmul_id_vector", 4);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| [FACTORS, FLOATS, I32].get(i).copied().unwrap_or(&[]),
    result: |_| F32,
    refuses,
    plan,
};

/// Refuses operands with a row that is too large for a binding.
fn refuses(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    let limit = caps.max_binding_bytes.min(u32::MAX.into());
    let operands = [("w", node.input(0)?), ("x", node.input(1)?)];
    let long = operands
        .into_iter()
        .chain([("result", node.output())])
        .find(|(_, value)| {
            let last = value.dims().from_end(0).saturating_sub(1);
            let reach = value.layout.stride_from_end(0).saturating_mul(last);
            let bytes = reach
                .saturating_add(1)
                .saturating_mul(value.dtype.block_bytes());
            bytes as u64 > limit.saturating_sub(caps.binding_alignment)
        });
    long.map(|(operand, _)| Reason::Layout {
        op: node.op().name(),
        operand,
    })
}

/// Products with experts, of a range of all experts.
#[derive(Clone, Debug)]
struct Experts {
    /// The number of all experts.
    experts: usize,
    /// The first expert of `w`.
    first: usize,
    /// `[experts of the range, n, k]`
    w: Operand,
    /// `[tokens, used, k]`
    x: Operand,
    /// `[tokens, used]`
    ids: Operand,
    /// `[tokens, used, n]`
    out: Operand,
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let caps = resolver.shared.device.caps();
    let (w, x) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let ids = resolver.input(node, 2)?;
    let dims = dims_with(ids.layout.dims(), x.layout.dims().from_end(0)).ok_or_else(refused)?;
    let broadcast = x.layout.broadcast_to(dims).ok_or_else(refused)?;
    let experts = Experts {
        experts: w.layout.dims().first().copied().unwrap_or(0),
        first: 0,
        w,
        x: x.with_layout(broadcast),
        ids,
        out: resolver.output(node)?,
    };
    let pieces = pieces(caps, experts).ok_or_else(refused)?;
    let dispatches = pieces.iter().map(|piece| dispatch(caps, piece));
    dispatches.collect::<Option<Vec<_>>>().ok_or_else(refused)
}

fn dims_with(dims: &Dims, last: usize) -> Option<Dims> {
    Dims::new(&[&dims[..], &[last]].concat())
}

/// Pieces whose operands fit bindings.
fn pieces(caps: &Caps, whole: Experts) -> Option<Vec<Experts>> {
    let limit = caps.max_binding_bytes.min(u32::MAX.into());
    let fits = |operand: &Operand| operand.fits(caps.binding_alignment, limit);
    let Experts { w, x, ids, out, .. } = &whole;
    let by_weight = !fits(w);
    if !by_weight && [x, ids, out].into_iter().all(fits) {
        return Some(vec![whole]);
    }
    // Experts, or the rows of one; else tokens, or the slots of one.
    let dims = if by_weight { w } else { out }.layout.dims();
    let dim = if dims[0] > 1 { 0 } else { 1 };
    let size = dims[dim];
    if size < 2 {
        return None;
    }
    let middle = size.div_ceil(2);
    let mut all = Vec::new();
    for range in [0..middle, middle..size] {
        let mut piece = whole.clone();
        if by_weight {
            piece.w = slice(w, dim, range.clone())?;
            match dim {
                0 => piece.first += range.start,
                _ => piece.out = slice(out, 2, range)?,
            }
        } else {
            piece.x = slice(x, dim, range.clone())?;
            piece.ids = slice(ids, dim, range.clone())?;
            piece.out = slice(out, dim, range)?;
        }
        all.extend(pieces(caps, piece)?);
    }
    Some(all)
}

fn dispatch(caps: &Caps, piece: &Experts) -> Option<Dispatch> {
    let Experts { w, x, ids, out, .. } = piece;
    let [own, n, k] = **w.layout.dims() else {
        return None;
    };
    let [tokens, used] = **ids.layout.dims() else {
        return None;
    };
    let stride = |layout: &Layout, i| layout.stride_from_end(i);
    let a = Matrices {
        offset: x.layout.offset(),
        batch: vec![stride(&x.layout, 2), stride(&x.layout, 1)],
        row_stride: 0,
        column_stride: if k == 1 { 1 } else { stride(&x.layout, 0) },
        operand: x.clone(),
    };
    let mut b = Matrices::new(w.clone(), vec![stride(&w.layout, 2)], false);
    if k == 1 {
        b.column_stride = 1;
    }
    let k_major = a.column_stride == 1 && b.column_stride == 1;
    let wide =
        k_major && k.is_multiple_of(8) && a.wide(&[tokens, used], 1, k) && b.wide(&[own], n, k);
    let pairs = tokens.checked_mul(used)?;
    let size = |size: usize| u32::try_from(size).ok();
    let view = |operand: &Operand, strides: &[usize]| {
        let strides = Dims::new(strides)?;
        Some(operand.view(&strides, caps.binding_alignment))
    };
    // Empty factors are not read. The result is bound in their place.
    let empty = own == 0 || k == 0;
    let [x_window, w_window] = [x, w].map(|operand| if empty { out } else { operand });
    let params = Params::new()
        .vec4([1, 1, size(tokens)?, size(used)?])
        .view(view(x_window, &a.batch)?)
        .view(view(w_window, &[b.batch[0], 0, 0, 0])?)
        .view(view(ids, ids.layout.strides())?)
        .view(view(
            out,
            &[stride(&out.layout, 2), stride(&out.layout, 1)],
        )?)
        .vec4([1, size(n)?, size(k)?, size(piece.experts)?])
        .vec4([
            0,
            size(a.column_stride)?,
            size(b.row_stride)?,
            size(b.column_stride)?,
        ])
        .vec4([
            size(piece.first)?,
            size(own)?,
            0,
            size(stride(&out.layout, 0))?,
        ])
        .floats([1.0, 0.0, 0.0, 0.0]);
    let mut constants = vec![
        ("A_DTYPE", code(x_window.dtype)),
        ("B_DTYPE", code(w_window.dtype)),
        ("C_DTYPE", 0),
        ("OUT_DTYPE", code(out.dtype)),
        ("ADDEND", 0),
    ];
    let (kernel, workgroups) = match policy::choose_experts(pairs, own, b.column_stride == 1) {
        ExpertsChoice::Vector => {
            vector_constants(1, &mut constants);
            (
                &VECTOR,
                n.div_ceil(policy::VECTOR_COLUMNS).checked_mul(pairs)?,
            )
        }
        ExpertsChoice::Tile => {
            constants.push(("TILE_GROUPS", 1));
            constants.push(("TILE_VECTORS", policy::EXPERTS_TILE_VECTORS));
            (&TILED, n.div_ceil(policy::TILE).checked_mul(own + 1)?)
        }
    };
    Some(Dispatch {
        kernel,
        features: variant(wide, out.dtype),
        constants,
        params: params.finish(),
        operands: vec![
            out.clone(),
            x_window.clone(),
            w_window.clone(),
            out.clone(),
            ids.clone(),
        ],
        workgroups: size(workgroups)?,
    })
}
