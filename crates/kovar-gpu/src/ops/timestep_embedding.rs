//! Sinusoidal embeddings of diffusion time steps.

use std::f64::consts::TAU;

use kovar_core::ops::{Op, TimestepEmbedding};
use kovar_core::{DType, NodeRef};

use super::pieces::pieces;
use super::rows::refuse_large;
use super::{Entry, F32, Planned, WORKGROUP, code, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::view::four;

static KERNEL: Kernel = Kernel::new("timestep_embedding", 1);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| &[DType::F32, DType::F16, DType::BF16, DType::I32],
    result: |_| F32,
    refuses: |caps, node| {
        refuse_large(caps, node, |i, layout| {
            // A time step, or the row that it is embedded as.
            let rank = layout.dims().rank() - usize::from(i == 1);
            (0..rank).try_fold(*layout, |layout, dim| layout.slice(dim, 0..1))
        })
    },
    plan,
};

/// Frequencies of a dispatch.
const FREQUENCIES: usize = 256;

/// Frequency `i` in turns, as the kernel reads it: the mantissa in two words, the exponent and a
/// flag.
fn frequency(op: &TimestepEmbedding, i: usize) -> [u32; 4] {
    let half = (op.dim / 2) as f64;
    let steps = half - f64::from(op.downscale_freq_shift);
    let radians = f64::from(op.scale) * f64::from(op.max_period).powf(-(i as f64) / steps);
    let turns = radians / TAU;
    if !turns.is_finite() {
        return [0, 0, 0, 2];
    }
    let bits = turns.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let mantissa = if biased == 0 {
        fraction
    } else {
        fraction | 1 << 52
    };
    let exponent = biased.max(1) - 1075;
    let flag = u32::from(turns < 0.0);
    [
        mantissa as u32,
        (mantissa >> 32) as u32,
        exponent as u32,
        flag,
    ]
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::TimestepEmbedding(op) = node.op() else {
        return Err(refused());
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let caps = resolver.shared.device.caps();
    let half = op.dim / 2;
    let number = |n: usize| u32::try_from(n).map_err(|_| refused());
    let rank = operands[1].layout.dims().rank();
    let mut dispatches = Vec::new();
    for piece in pieces(caps, &operands, rank, 4).ok_or_else(refused)? {
        let views = piece.views(caps);
        let ([out, t], [out_view, t_view]) = (piece.operands.as_slice(), views.as_slice()) else {
            return Err(refused());
        };
        let stride = number(out.layout.stride_from_end(0))?;
        let rows = piece.collapsed.dims.elements().ok_or_else(refused)?;
        for first in (0..half).step_by(FREQUENCIES) {
            let count = FREQUENCIES.min(half - first);
            let rest = u32::from(first == 0 && op.dim % 2 == 1);
            let mut params = Params::new()
                .vec4(four(&piece.collapsed.dims, 1))
                .view(*out_view)
                .view(*t_view)
                .vec4([number(first)?, number(count)?, number(half)?, stride])
                .vec4([rest, 0, 0, 0]);
            for i in 0..FREQUENCIES {
                params = params.vec4(if i < count {
                    frequency(op, first + i)
                } else {
                    [0; 4]
                });
            }
            dispatches.push(Dispatch {
                kernel: &KERNEL,
                features: Features::NONE,
                constants: vec![
                    ("INTEGER", u32::from(t.dtype == DType::I32)),
                    ("A_DTYPE", code(t.dtype)),
                    ("FLIP", u32::from(op.flip_sin_to_cos)),
                    ("WORKGROUP", WORKGROUP),
                ],
                params: params.finish(),
                operands: piece.operands.clone(),
                workgroups: number(rows * count)?.div_ceil(WORKGROUP),
            });
        }
    }
    Ok(dispatches)
}
