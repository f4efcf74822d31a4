//! Products with the weights of chosen experts.

use kovar_core::{Dims, Layout, NodeRef};

use super::product::policy::{self, ExpertsChoice};
use super::product::{Matrices, variant};
use super::{Entry, F32, FACTORS, FLOATS, I32, Planned, code, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::Operand;

const BINDINGS: &[Access] = &[
    Access::Write,
    Access::Read,
    Access::Read,
    Access::Read,
    Access::Read,
];

static TILED: Kernel = Kernel {
    file: "matmul_id",
    entry: "matmul_id",
    bindings: BINDINGS,
};

static VECTOR: Kernel = Kernel {
    file: "matmul_id_vector",
    entry: "matmul_id_vector",
    bindings: BINDINGS,
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| [FACTORS, FLOATS, I32].get(i).copied().unwrap_or(&[]),
    result: |_| F32,
    refuses: |_, _| None,
    plan,
};

/// A part of the products.
#[derive(Clone, Debug)]
struct Experts {
    /// Of all experts, and the first here.
    experts: usize,
    first: usize,
    /// `[experts here, n, k]`
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

/// Parts whose operands fit bindings.
fn pieces(caps: &Caps, whole: Experts) -> Option<Vec<Experts>> {
    let limit = caps.max_binding_bytes.min(u32::MAX.into());
    let fits = |operand: &Operand| operand.fits(caps.binding_alignment, limit);
    let Experts { w, x, ids, out, .. } = &whole;
    let size = |operand: &Operand, dim: usize| operand.layout.dims()[dim];
    let slice = |operand: &Operand, dim: usize, start: usize, size: usize| {
        let layout = operand.layout.slice(dim, start..start + size)?;
        Some(operand.with_layout(layout))
    };
    let mut all = Vec::new();
    if !fits(w) {
        // Experts, or the rows of one.
        let dim = if size(w, 0) > 1 { 0 } else { 1 };
        let whole_size = size(w, dim);
        let step = whole_size.div_ceil(2);
        if step == whole_size {
            return None;
        }
        for start in [0, step] {
            let size = step.min(whole_size - start);
            let mut part = Experts {
                w: slice(w, dim, start, size)?,
                ..whole.clone()
            };
            match dim {
                0 => part.first += start,
                _ => part.out = slice(out, 2, start, size)?,
            }
            all.extend(pieces(caps, part)?);
        }
    } else if [x, ids, out].into_iter().any(|operand| !fits(operand)) {
        // Tokens, or the slots of one.
        let dim = if size(out, 0) > 1 { 0 } else { 1 };
        let whole_size = size(out, dim);
        let step = whole_size.div_ceil(2);
        if step == whole_size {
            return None;
        }
        for start in [0, step] {
            let size = step.min(whole_size - start);
            let part = Experts {
                x: slice(x, dim, start, size)?,
                ids: slice(ids, dim, start, size)?,
                out: slice(out, dim, start, size)?,
                ..whole.clone()
            };
            all.extend(pieces(caps, part)?);
        }
    } else {
        all.push(whole);
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
        line: 0,
        step: if k == 1 { 1 } else { stride(&x.layout, 0) },
        operand: x.clone(),
    };
    let mut b = Matrices::new(w.clone(), vec![stride(&w.layout, 2)], false);
    if k == 1 {
        b.step = 1;
    }
    let rows = a.step == 1 && b.step == 1;
    let wide = rows && k.is_multiple_of(8) && a.wide(&[tokens, used], 1, k) && b.wide(&[own], n, k);
    let pairs = tokens.checked_mul(used)?;
    let size = |size: usize| u32::try_from(size).ok();
    let view = |operand: &Operand, strides: &[usize]| {
        let strides = Dims::new(strides)?;
        Some(operand.view(&strides, caps.binding_alignment))
    };
    // Where there is nothing to read, nothing is bound.
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
        .vec4([0, size(a.step)?, size(b.line)?, size(b.step)?])
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
    let (kernel, workgroups) = match policy::choose_experts(pairs, own, b.step == 1) {
        ExpertsChoice::Vector => {
            constants.push(("LINES", 1));
            constants.push(("VECTOR_WORKGROUP", policy::VECTOR_WORKGROUP));
            constants.push(("PARTIALS", policy::VECTOR_WORKGROUP));
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
