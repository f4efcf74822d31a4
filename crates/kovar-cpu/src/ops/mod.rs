//! The kernel table. One file per operation holds the dtypes that its kernel takes and the kernel
//! itself; [`supports`] and [`compile`] read the same row.

mod arange;
mod argmax;
mod argsort;
mod attention;
mod binary;
mod blocked;
mod concat;
mod conv2d;
mod conv_transpose2d;
mod convolution;
mod copy;
mod elements;
pub(crate) mod fused;
mod gemm;
mod get_rows;
mod glu;
mod group_norm;
mod l2_norm;
mod layer_norm;
mod matmul;
mod matmul_i8;
mod matmul_id;
mod matrix;
mod moments;
mod pad;
mod pool2d;
mod quantize_rows;
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

pub(crate) use matmul::takes_packed;

use kovar_core::backend::{Reason, Support};
use kovar_core::error::DeviceError;
use kovar_core::ops::Op;
use kovar_core::ops::dtypes::{COPIES, ENCODED, FACTORS, FLOATS, PLAIN, WEIGHTS};
use kovar_core::{DType, NodeRef};

use crate::program::{Kernel, Operand, Resolver, Run};

const F32: &[DType] = &[DType::F32];
const I32: &[DType] = &[DType::I32];
const I8: &[DType] = &[DType::I8];

type Compiled = Result<Box<dyn Kernel>, DeviceError>;

/// A kernel and how many consecutive nodes it runs.
type Taken = (Box<dyn Kernel>, usize);

/// A row of the table. Kernels take operands of any strides.
struct Entry {
    /// The dtypes that operand `i` may have.
    operands: fn(&Op, usize) -> &'static [DType],
    /// The dtypes that the result may have.
    result: fn(&Op) -> &'static [DType],
    /// Makes the kernel of a node.
    compile: fn(&Resolver<'_>, NodeRef<'_>) -> Compiled,
}

/// An estimate of the scratch memory of a node's kernel. Only products count, which take the most.
pub(crate) fn scratch_bytes(node: NodeRef<'_>, n_threads: usize) -> usize {
    match node.op() {
        Op::Matmul(_) => matmul::scratch_bytes(node, n_threads).unwrap_or(0),
        _ => 0,
    }
}

/// The table.
fn entry(op: &Op) -> Option<&'static Entry> {
    Some(match op {
        Op::Arange(_) => &arange::ENTRY,
        Op::Argmax(_) => &argmax::ENTRY,
        Op::Argsort(_) => &argsort::ENTRY,
        Op::Attention(_) => &attention::ENTRY,
        Op::Binary(_) => &binary::ENTRY,
        Op::Concat(_) => &concat::ENTRY,
        Op::Copy(_) => &copy::ENTRY,
        Op::Conv2d(_) => &conv2d::ENTRY,
        Op::ConvTranspose2d(_) => &conv_transpose2d::ENTRY,
        Op::Gemm(_) => &gemm::ENTRY,
        Op::GetRows(_) => &get_rows::ENTRY,
        Op::Glu(_) => &glu::ENTRY,
        Op::GroupNorm(_) => &group_norm::ENTRY,
        Op::L2Norm(_) => &l2_norm::ENTRY,
        Op::LayerNorm(_) => &layer_norm::ENTRY,
        Op::Matmul(_) => &matmul::ENTRY,
        Op::Pad(_) => &pad::ENTRY,
        Op::Reduce(_) => &reduce::ENTRY,
        Op::Repeat(_) => &repeat::ENTRY,
        Op::RmsNorm(_) => &rms_norm::ENTRY,
        Op::Rope(_) => &rope::ENTRY,
        Op::RopeApply(_) => &rope_apply::ENTRY,
        Op::Scale(_) => &scale::ENTRY,
        Op::SetRows(_) => &set_rows::ENTRY,
        Op::Softmax(_) => &softmax::ENTRY,
        Op::TimestepEmbedding(_) => &timestep_embedding::ENTRY,
        Op::Unary(_) => &unary::ENTRY,
        Op::TokenShift(_) => &token_shift::ENTRY,
        Op::Wkv7(_) => &wkv7::ENTRY,
        Op::MatmulI8(_) => &matmul_i8::ENTRY,
        Op::MatmulId(_) => &matmul_id::ENTRY,
        Op::Pool2d(_) => &pool2d::ENTRY,
        Op::QuantizeRows(_) => &quantize_rows::ENTRY,
        Op::RowScales(_) => &row_scales::ENTRY,
        Op::Upscale(_) => &upscale::ENTRY,
        _ => return None,
    })
}

/// Whether the table has a kernel for a node.
pub(crate) fn supports(node: NodeRef<'_>) -> Support {
    let op = node.op();
    let Some(entry) = entry(op) else {
        return Support::No(Reason::Op { op: op.name() });
    };
    let dtypes = Reason::of_dtypes(node, |i| (entry.operands)(op, i), (entry.result)(op));
    dtypes.map_or(Support::Yes, Support::No)
}

/// Makes a kernel for the first of some consecutive nodes, and returns how many of them it runs.
pub(crate) fn compile(
    resolver: &Resolver<'_>,
    first: NodeRef<'_>,
    nodes: &[NodeRef<'_>],
) -> Result<Taken, DeviceError> {
    if let Some(group) = matmul::compile_group(resolver, nodes)? {
        return Ok(group);
    }
    let op = first.op();
    let entry = entry(op).ok_or_else(|| {
        let op = op.name();
        resolver.shared.unsupported(Reason::Op { op })
    })?;
    Ok(((entry.compile)(resolver, first)?, 1))
}

/// Operand `i` of a node, if it has that many.
fn optional<'a>(
    resolver: &Resolver<'a>,
    node: NodeRef<'_>,
    i: usize,
) -> Result<Option<Operand<'a>>, DeviceError> {
    let input = (node.n_inputs() > i).then(|| resolver.input(node, i));
    input.transpose()
}

/// The first of the `len` f32 elements of scratch memory that `worker` has.
///
/// # Safety
/// As [`Kernel::run`]; the kernel takes scratch memory for `len` elements of each worker.
unsafe fn worker_scratch(run: &Run<'_>, worker: usize, len: usize) -> *mut f32 {
    // SAFETY: by this function's contract.
    unsafe { run.scratch.get().cast::<f32>().add(worker * len) }
}

/// The error for operands that the graph's checks exclude.
fn malformed(resolver: &Resolver<'_>, node: NodeRef<'_>, operand: &'static str) -> DeviceError {
    let op = node.op().name();
    resolver.shared.unsupported(Reason::Layout { op, operand })
}
