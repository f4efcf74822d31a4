//! The kernel table. One file per operation holds the dtypes that its kernels take and how a node
//! is planned into dispatches; [`supports`] and [`plan`] read the same row.

mod arange;
mod argmax;
mod argsort;
mod binary;
mod cast;
mod concat;
mod conv2d;
mod conv_transpose2d;
mod convolution;
mod copy;
mod elementwise;
mod gemm;
mod get_rows;
mod glu;
mod group_norm;
mod images;
mod l2_norm;
mod layer_norm;
mod matmul;
mod matmul_id;
mod pad;
mod pieces;
mod pool2d;
mod product;
mod quantize_rows;
mod rearrange;
mod reduce;
mod repeat;
mod rms_norm;
mod rope;
mod rope_apply;
mod row_scales;
mod rows;
mod scale;
mod set_rows;
mod softmax;
mod timestep_embedding;
mod token_shift;
mod unary;
mod upscale;
mod wkv7;

use kovar_core::backend::{Reason, Support};
use kovar_core::error::DeviceError;
use kovar_core::ops::Op;
use kovar_core::ops::dtypes::{FACTORS, FLOATS, PLAIN};
use kovar_core::{DType, NodeRef};

use crate::backend::GpuState;
use crate::kernel::{Dispatch, Features};
use crate::program::Resolver;
use crate::seam::Caps;

const F32: &[DType] = &[DType::F32];
const I32: &[DType] = &[DType::I32];

/// Invocations of a workgroup, unless a kernel needs another number.
const WORKGROUP: u32 = 256;

type Planned = Result<Vec<Dispatch>, DeviceError>;

/// A row of the table.
struct Entry {
    /// The dtypes that operand `i` may have.
    operands: fn(&Op, usize) -> &'static [DType],
    /// The dtypes that the result may have.
    result: fn(&Op) -> &'static [DType],
    /// Why a device cannot run a node whose dtypes are right; `None` if it can.
    refuses: fn(&Caps, NodeRef<'_>) -> Option<Reason>,
    /// Plans a node that is supported and whose result is not empty.
    plan: fn(&Resolver<'_>, NodeRef<'_>) -> Planned,
}

impl Entry {
    /// A row for an operation on floats.
    const fn floats(
        refuses: fn(&Caps, NodeRef<'_>) -> Option<Reason>,
        plan: fn(&Resolver<'_>, NodeRef<'_>) -> Planned,
    ) -> Self {
        Self {
            operands: |_, _| FLOATS,
            result: |_| FLOATS,
            refuses,
            plan,
        }
    }

    /// A row for an operation on plain dtypes that refuses no node.
    const fn plain(plan: fn(&Resolver<'_>, NodeRef<'_>) -> Planned) -> Self {
        Self {
            operands: |_, _| PLAIN,
            result: |_| PLAIN,
            refuses: |_, _| None,
            plan,
        }
    }
}

/// The table.
fn entry(op: &Op) -> Option<&'static Entry> {
    Some(match op {
        Op::Arange(_) => &arange::ENTRY,
        Op::Argmax(_) => &argmax::ENTRY,
        Op::Argsort(_) => &argsort::ENTRY,
        Op::Binary(_) => &binary::ENTRY,
        Op::Concat(_) => &concat::ENTRY,
        Op::Conv2d(_) => &conv2d::ENTRY,
        Op::ConvTranspose2d(_) => &conv_transpose2d::ENTRY,
        Op::Copy(_) => &copy::ENTRY,
        Op::Gemm(_) => &gemm::ENTRY,
        Op::GetRows(_) => &get_rows::ENTRY,
        Op::Glu(_) => &glu::ENTRY,
        Op::GroupNorm(_) => &group_norm::ENTRY,
        Op::L2Norm(_) => &l2_norm::ENTRY,
        Op::LayerNorm(_) => &layer_norm::ENTRY,
        Op::Matmul(_) => &matmul::ENTRY,
        Op::MatmulId(_) => &matmul_id::ENTRY,
        Op::Pad(_) => &pad::ENTRY,
        Op::Pool2d(_) => &pool2d::ENTRY,
        Op::QuantizeRows(_) => &quantize_rows::ENTRY,
        Op::Reduce(_) => &reduce::ENTRY,
        Op::Repeat(_) => &repeat::ENTRY,
        Op::RmsNorm(_) => &rms_norm::ENTRY,
        Op::Rope(_) => &rope::ENTRY,
        Op::RopeApply(_) => &rope_apply::ENTRY,
        Op::RowScales(_) => &row_scales::ENTRY,
        Op::Scale(_) => &scale::ENTRY,
        Op::SetRows(_) => &set_rows::ENTRY,
        Op::Softmax(_) => &softmax::ENTRY,
        Op::TimestepEmbedding(_) => &timestep_embedding::ENTRY,
        Op::TokenShift(_) => &token_shift::ENTRY,
        Op::Unary(_) => &unary::ENTRY,
        Op::Upscale(_) => &upscale::ENTRY,
        Op::Wkv7(_) => &wkv7::ENTRY,
        _ => return None,
    })
}

/// Whether the table has a kernel for a node.
pub(crate) fn supports(caps: &Caps, node: NodeRef<'_>) -> Support {
    let op = node.op();
    let Some(entry) = entry(op) else {
        return Support::No(Reason::Op { op: op.name() });
    };
    let dtypes = Reason::of_dtypes(node, |i| (entry.operands)(op, i), (entry.result)(op));
    let refused = dtypes.or_else(|| (entry.refuses)(caps, node));
    refused.map_or(Support::Yes, Support::No)
}

/// The dispatches of a node; none if it writes nothing.
pub(crate) fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    if let Support::No(reason) = supports(resolver.shared.device.caps(), node) {
        return Err(unsupported(resolver.shared, reason));
    }
    let entry = entry(node.op()).ok_or_else(|| no_kernel(resolver.shared, node))?;
    if node.writes().all(|value| value.layout.elements() == 0) {
        return Ok(Vec::new());
    }
    (entry.plan)(resolver, node)
}

fn unsupported(shared: &GpuState, reason: Reason) -> DeviceError {
    DeviceError::Unsupported {
        device: shared.info.id.clone(),
        reason,
    }
}

/// The error for a node without a kernel, or with operands that the graph's checks exclude.
pub(crate) fn no_kernel(shared: &GpuState, node: NodeRef<'_>) -> DeviceError {
    unsupported(
        shared,
        Reason::Op {
            op: node.op().name(),
        },
    )
}

/// The reason for refusing a node whose attributes no kernel supports.
fn unknown(node: NodeRef<'_>) -> Reason {
    Reason::Op {
        op: node.op().name(),
    }
}

/// The features of a kernel whose results are narrower than a word, or are not.
fn narrow(is_narrow: bool) -> Features {
    if is_narrow {
        Features::NARROW
    } else {
        Features::NONE
    }
}

/// The number of a dtype in `shared/element.wgsl` and `shared/factor.wgsl`: that of
/// `shared/number.wgsl` if it is a factor, else 0, with which elements are read as words.
fn code(dtype: DType) -> u32 {
    let factor = FACTORS.contains(&dtype).then(|| cast::number(dtype));
    factor.flatten().unwrap_or(0)
}
