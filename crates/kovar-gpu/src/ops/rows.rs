//! Operations that compute along the last dimension, row by row.
//!
//! The lanes of a workgroup share a row, or several rows if they are short. Long rows are cut into
//! chunks, one for each workgroup: one dispatch writes a partial result of every chunk to scratch
//! memory, and the next dispatch begins by merging them.

use kovar_core::backend::Reason;
use kovar_core::{DType, Dims, Layout, MAX_RANK, NodeRef, Value, collapse};

use super::pieces::{fits, per_word, slice};
use super::{Planned, code, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::scratch;
use crate::seam::Caps;
use crate::view::{Operand, View, four};

/// The base-2 logarithm of the invocations of a workgroup.
pub(super) const LOG2_WORKGROUP: u32 = 8;
/// The longest rows that are not cut.
const LONG: u32 = 16_384;
/// The fewest elements of a chunk.
const CHUNK: u32 = 4096;
/// The most chunks of a row.
const MAX_CHUNKS: u32 = 1024;

/// The names of the constants of operands' dtypes, the result's first.
const DTYPES: [&str; 7] = [
    "OUT_DTYPE",
    "A_DTYPE",
    "B_DTYPE",
    "C_DTYPE",
    "D_DTYPE",
    "E_DTYPE",
    "F_DTYPE",
];

/// Operands that agree in all dims but the last, in the form that kernels take: three outer dims.
pub(super) struct Rows {
    pub operands: Vec<Operand>,
    pub outer: [u32; 3],
    /// Where they begin along each dim of the operands.
    pub start: [usize; MAX_RANK],
    /// The operands' views, of the three outer dims and the last.
    pub views: Vec<View>,
}

impl Rows {
    /// The number of rows.
    pub fn count(&self) -> u32 {
        self.outer.iter().product()
    }

    /// The result and the first operand.
    pub fn pair(&self) -> Option<[Window<'_>; 2]> {
        let ([y, x, ..], &[y_view, x_view, ..]) = (&self.operands[..], &self.views[..]) else {
            return None;
        };
        Some([(y, y_view), (x, x_view)])
    }

    /// A dispatch of `kernel` on `operands`, the result first. `constants` are those other than
    /// the dtypes.
    pub fn dispatch(
        &self,
        kernel: &'static Kernel,
        split: Split,
        params: Params,
        operands: Vec<Operand>,
        constants: &[(&'static str, u32)],
    ) -> Dispatch {
        Dispatch {
            kernel,
            features: operands.first().map_or(Features::SUBGROUPS, features),
            constants: [&dtypes(&operands), constants].concat(),
            params: params.finish(),
            operands,
            workgroups: split.workgroups(self),
        }
    }

    /// The view of scratch memory that has `per_row` words for each row.
    pub fn scratch_view(&self, per_row: u32) -> View {
        let [_, middle, inner] = self.outer;
        View::of([middle * inner * per_row, inner * per_row, per_row, 1])
    }

    /// Scratch memory with `per_row` words for each row.
    pub fn scratch(&self, per_row: u32) -> Option<Operand> {
        scratch::operand(0..(self.count() as usize).checked_mul(per_row as usize)?)
    }
}

/// A window of rows with its view.
pub(super) type Window<'a> = (&'a Operand, View);

/// How rows of a length are distributed to lanes and workgroups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// The length of a row.
    pub n: u32,
    /// The base-2 logarithm of the lanes for a row.
    pub log2_lanes: u32,
    /// The elements of a chunk.
    pub chunk: u32,
    /// The chunks of a row; 1 if it is not cut.
    pub chunks: u32,
}

impl Split {
    /// For the rows of an operand; `None` if they are too long.
    pub fn of_rows(x: &Operand) -> Option<Self> {
        u32::try_from(x.layout.dims().from_end(0))
            .ok()
            .map(Self::of)
    }

    /// For rows of `n` elements, which may be cut into chunks.
    pub fn of(n: u32) -> Self {
        let chunk = match n {
            0..=LONG => n.max(1),
            _ => CHUNK.max(n.div_ceil(MAX_CHUNKS).next_multiple_of(256)),
        };
        Self {
            n,
            log2_lanes: match n {
                0..=4 => 0,
                5..=256 => 4,
                _ => LOG2_WORKGROUP,
            },
            chunk,
            chunks: n.div_ceil(chunk).max(1),
        }
    }

    /// For groups of `n` elements, which are always computed by chunks.
    pub fn of_group(n: u32) -> Self {
        let chunk = CHUNK.max(n.div_ceil(MAX_CHUNKS).next_multiple_of(256));
        Self {
            chunk,
            chunks: n.div_ceil(chunk).max(1),
            ..Self::of(n)
        }
    }

    /// For rows that are not cut.
    pub fn whole(n: u32) -> Self {
        Self {
            chunk: n,
            chunks: 1,
            ..Self::of(n)
        }
    }

    /// Whether a row is cut into chunks.
    pub fn is_cut(self) -> bool {
        self.chunks > 1
    }

    /// The beginning of a kernel's parameters: `Rows` of `shared/rows.wgsl`.
    pub fn params(self, rows: &Rows) -> Params {
        let [x, y, z] = rows.outer;
        Params::new()
            .vec4([x, y, z, self.n])
            .u32(self.log2_lanes)
            .u32(self.chunk)
            .u32(self.chunks)
            .u32(rows.count())
    }

    /// The number of workgroups for `rows`.
    pub fn workgroups(self, rows: &Rows) -> u32 {
        (rows.count() * self.chunks).div_ceil(1 << (LOG2_WORKGROUP - self.log2_lanes))
    }
}

/// The constants of the operands' dtypes, in the order of the bindings.
pub(super) fn dtypes(operands: &[Operand]) -> Vec<(&'static str, u32)> {
    let names = DTYPES.iter().zip(operands);
    names
        .map(|(name, operand)| (*name, code(operand.dtype)))
        .collect()
}

/// The features of a kernel that reduces and writes `out`.
pub(super) fn features(out: &Operand) -> Features {
    match out.dtype {
        DType::F16 | DType::BF16 => Features::SUBGROUPS.with(Features::NARROW),
        _ => Features::SUBGROUPS,
    }
}

/// The constant of the elements of a row of `out`, of `n`, that an invocation writes at once: 2
/// where pairs of 16-bit elements are words, else 1.
pub(super) fn per((out, view): Window<'_>, n: u32) -> (&'static str, u32) {
    let narrow = matches!(out.dtype, DType::F16 | DType::BF16);
    ("PER", per_word(&view, n, if narrow { 2 } else { 1 }))
}

/// Plans a node row by row: `plan` appends the dispatches of rows that kernels can take, see
/// [`rows`].
pub(super) fn plan_rows(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    operands: &[Operand],
    apart: usize,
    plan: impl Fn(&Rows, &mut Vec<Dispatch>) -> Option<()>,
) -> Planned {
    let mut dispatches = Vec::new();
    rows(resolver.shared.device.caps(), operands, apart)
        .and_then(|all| all.iter().try_for_each(|rows| plan(rows, &mut dispatches)))
        .ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}

/// Cuts operands along their outer dims until kernels can take them; `None` if their outer dims
/// differ or a single row is too large. The `apart` dims before the last are not merged with
/// others.
pub(super) fn rows(caps: &Caps, operands: &[Operand], apart: usize) -> Option<Vec<Rows>> {
    let mut all = Vec::new();
    cut(caps, operands.to_vec(), apart, [0; MAX_RANK], &mut all)?;
    Some(all)
}

fn cut(
    caps: &Caps,
    operands: Vec<Operand>,
    apart: usize,
    start: [usize; MAX_RANK],
    all: &mut Vec<Rows>,
) -> Option<()> {
    let dims = *operands.first()?.layout.dims();
    let n_outer = dims.rank().checked_sub(1)?;
    let lead = n_outer.checked_sub(apart)?;
    let outer = Dims::new(&dims[..n_outer])?;
    let agree = |operand: &Operand| {
        let own = operand.layout.dims();
        own.rank() == dims.rank() && own[..n_outer] == dims[..n_outer]
    };
    if !operands.iter().all(agree) {
        return None;
    }
    let count = outer.elements()?;
    if count == 0 {
        return Some(());
    }
    let leads = operands.iter().map(|operand| {
        let layout = &operand.layout;
        let first = |sizes: &Dims| Dims::new(&sizes[..lead]);
        Layout::strided(first(layout.dims())?, first(layout.strides())?, 0)
    });
    let leads = leads.collect::<Option<Vec<_>>>()?;
    let merged = collapse(&leads.iter().collect::<Vec<_>>())?;
    let small = count <= (u32::MAX / MAX_CHUNKS) as usize && operands.iter().all(|o| fits(caps, o));
    let n_lead = merged.dims.rank();
    if small && n_lead + apart <= 3 {
        let join = |leads: &[usize], own: &[usize]| Dims::new(&[leads, own].concat());
        let [_, outer @ ..] = four(&join(&merged.dims, &dims[lead..n_outer])?, 1);
        let views = operands.iter().zip(&merged.strides);
        let views = views.map(|(operand, leads)| {
            let strides = join(leads, &operand.layout.strides()[lead..])?;
            Some(operand.view(&strides, caps.binding_alignment))
        });
        let views = views.collect::<Option<_>>()?;
        all.push(Rows {
            outer,
            start,
            views,
            operands,
        });
        return Some(());
    }
    let dim = (0..n_outer).find(|&dim| dims[dim] > 1)?;
    // If only the rank is too large, single indices of the outermost dim reduce it by one.
    let step = if small { 1 } else { dims[dim].div_ceil(2) };
    for from in (0..dims[dim]).step_by(step) {
        let end = (from + step).min(dims[dim]);
        let pieces = operands
            .iter()
            .map(|operand| slice(operand, dim, from..end));
        let mut start = start;
        start[dim] += from;
        cut(caps, pieces.collect::<Option<_>>()?, apart, start, all)?;
    }
    Some(())
}

/// Refuses operands whose rows, along the last dim, are too large for a binding.
pub(super) fn refuse_rows(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    refuse_large(caps, node, |_, layout| {
        let outer = layout.dims().rank().saturating_sub(1);
        (0..outer).try_fold(*layout, |layout, dim| layout.slice(dim, 0..1))
    })
}

/// Refuses operands that kernels cannot bind piece by piece. `of` gives the layout of the smallest
/// piece of an operand, given its index and its layout; the result's index is the number of
/// operands.
pub(super) fn refuse_large(
    caps: &Caps,
    node: NodeRef<'_>,
    of: impl Fn(usize, &Layout) -> Option<Layout>,
) -> Option<Reason> {
    let too_large = |i: usize, value: &Value| {
        // An empty operand has no pieces.
        let span = of(i, &value.layout).map_or(0, |piece| piece.span().len());
        let bytes = span.saturating_mul(value.dtype.block_bytes()) as u64;
        bytes.saturating_add(caps.binding_alignment) > caps.max_binding_bytes
    };
    let op = node.op();
    let mut all = node.inputs().chain([node.output()]).enumerate();
    let (i, _) = all.find(|&(i, value)| too_large(i, value))?;
    let is_result = i == node.n_inputs();
    Some(Reason::Layout {
        op: op.name(),
        operand: if is_result {
            "result"
        } else {
            op.operand_name(i)
        },
    })
}
