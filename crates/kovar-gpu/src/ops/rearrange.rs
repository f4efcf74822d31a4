//! Operations that move elements unchanged: copies, repetitions, padding.

use std::ops::Range;

use kovar_core::{DType, Dims, NodeRef};

use super::pieces::{MAX_ELEMENTS, fits, slice};
use super::{Planned, WORKGROUP, narrow, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::{Operand, View, four};

static KERNEL: Kernel = Kernel::new("rearrange", 1);

/// How the elements of the source are placed in the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each at its own index.
    Copy,
    /// The whole source again and again along each dimension.
    Repeat,
    /// The source surrounded by a constant.
    Pad {
        /// Elements of padding before the source along each dimension.
        before: Vec<usize>,
        /// The bits of the constant, extended with zeros.
        fill: [u32; 2],
    },
}

/// A dimension of the result and of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    /// The source's size.
    inner: usize,
    /// Elements of padding before the source.
    before: usize,
    out_stride: usize,
    stride: usize,
}

/// The dispatches that move a node's first operand to its result.
pub(super) fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>, mode: Mode) -> Planned {
    let moved = Rearrangement {
        out: resolver.output(node)?,
        x: resolver.input(node, 0)?,
        mode,
    };
    let mut dispatches = Vec::new();
    moved
        .plan(resolver.shared.device.caps(), &mut dispatches)
        .ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}

/// A result, its source of the same dtype and rank, and how elements are moved.
#[derive(Clone)]
pub(super) struct Rearrangement {
    pub out: Operand,
    pub x: Operand,
    pub mode: Mode,
}

impl Rearrangement {
    /// Appends the dispatches; `None` if the operands' dims do not match.
    pub fn plan(&self, caps: &Caps, all: &mut Vec<Dispatch>) -> Option<()> {
        let dims = *self.out.layout.dims();
        if self.out.layout.elements() == 0 {
            return Some(());
        }
        let empty = self.x.layout.elements() == 0;
        let small = fits(caps, &self.out)
            && (empty || fits(caps, &self.x))
            && self.out.layout.elements() <= MAX_ELEMENTS;
        let axes = self.axes()?;
        if small && axes.len() <= 4 {
            all.push(self.dispatch(caps, &axes)?);
            return Some(());
        }
        let dim = (0..dims.rank()).find(|&dim| dims[dim] > 1)?;
        let (size, inner) = (dims[dim], *self.x.layout.dims().get(dim)?);
        let step = if small {
            1
        } else if self.mode == Mode::Repeat && size > inner {
            inner * (size / inner).div_ceil(2)
        } else {
            size.div_ceil(2)
        };
        for start in (0..size).step_by(step) {
            self.cut(dim, start..(start + step).min(size))?
                .plan(caps, all)?;
        }
        Some(())
    }

    /// The piece for a range of the result's dimension `dim`. If the source is repeated along it,
    /// the range has whole periods or lies within one.
    fn cut(&self, dim: usize, range: Range<usize>) -> Option<Self> {
        let inner = *self.x.layout.dims().get(dim)?;
        let mut mode = self.mode.clone();
        let source = match &mut mode {
            Mode::Copy => range.clone(),
            Mode::Repeat if range.len() >= inner => 0..inner,
            Mode::Repeat => {
                let start = range.start % inner.max(1);
                start..start + range.len()
            }
            Mode::Pad { before, .. } => {
                let first = before.get_mut(dim)?;
                let inside = |at: usize| at.clamp(*first, *first + inner) - *first;
                let source = inside(range.start)..inside(range.end);
                *first = first.saturating_sub(range.start).min(range.len());
                source
            }
        };
        Some(Self {
            out: slice(&self.out, dim, range)?,
            x: slice(&self.x, dim, source)?,
            mode,
        })
    }

    /// The dimensions, outermost first, without those of size 1. Dimensions that are contiguous to
    /// each other are merged.
    fn axes(&self) -> Option<Vec<Axis>> {
        let (out, x) = (&self.out.layout, &self.x.layout);
        if out.dims().rank() != x.dims().rank() {
            return None;
        }
        let nothing = x.elements() == 0;
        let mut axes: Vec<Axis> = Vec::new();
        for dim in (0..out.dims().rank()).filter(|&dim| out.dims()[dim] != 1) {
            let (size, out_stride) = (out.dims()[dim], out.strides()[dim]);
            let axis = Axis {
                size,
                // An empty source leaves only the constant.
                inner: if nothing { size } else { x.dims()[dim] },
                before: match &self.mode {
                    Mode::Pad { before, .. } if !nothing => *before.get(dim)?,
                    _ => 0,
                },
                out_stride,
                stride: if nothing {
                    out_stride
                } else {
                    x.strides()[dim]
                },
            };
            match axes.last().and_then(|outer| outer.merged(axis, &self.mode)) {
                Some(merged) => *axes.last_mut()? = merged,
                None => axes.push(axis),
            }
        }
        if axes.is_empty() {
            axes.push(Axis::ONE);
        }
        Some(axes)
    }

    fn dispatch(&self, caps: &Caps, axes: &[Axis]) -> Option<Dispatch> {
        let nothing = self.x.layout.elements() == 0;
        // The result is bound in place of an empty source.
        let x = if nothing { &self.out } else { &self.x };
        let offset = |operand: &Operand| {
            let (_, residual) = operand.binding(caps.binding_alignment);
            Some(residual as usize / operand.dtype.block_bytes().max(1))
        };
        let (mut out_offset, mut offset) = (offset(&self.out)?, offset(x)?);
        let (mut shift, split) = unit(self.out.dtype)?;
        let mut axes = axes.to_vec();
        let (mode, mut fill) = match self.mode {
            Mode::Copy if !nothing => (0, [0; 2]),
            Mode::Repeat if !nothing => (1, [0; 2]),
            Mode::Pad { fill, .. } => (2, fill),
            _ => (2, [0; 2]),
        };
        let (last, outer) = axes.split_last_mut()?;
        let per = 1usize << shift;
        let whole = |n: usize| n.is_multiple_of(per);
        let out_words = last.out_stride == 1
            && whole(last.size)
            && whole(out_offset)
            && outer.iter().all(|axis| whole(axis.out_stride));
        let mut per_invocation = if out_words { per } else { 1 };
        let in_words = last.stride == 1
            && [last.inner, last.before, offset].into_iter().all(whole)
            && outer.iter().all(|axis| whole(axis.stride));
        if out_words && in_words && per > 1 {
            // All elements of a word are moved together.
            for axis in outer {
                axis.out_stride /= per;
                axis.stride /= per;
            }
            last.size /= per;
            last.inner /= per;
            last.before /= per;
            (out_offset, offset) = (out_offset / per, offset / per);
            fill[0] *= if shift == 1 { 0x1_0001 } else { 0x101_0101 };
            (shift, per_invocation) = (0, 1);
        }
        let collect = |f: fn(&Axis) -> usize| {
            let sizes: Vec<usize> = axes.iter().map(f).collect();
            Dims::new(&sizes)
        };
        let inner = if nothing {
            [0; 4]
        } else {
            four(&collect(|axis| axis.inner)?, 1)
        };
        let dims = collect(|axis| axis.size)?;
        let view = |strides: Dims, offset: usize| View::new(&strides, offset as u64);
        let params = Params::new()
            .vec4(four(&dims, 1))
            .vec4(inner)
            .vec4(four(&collect(|axis| axis.before)?, 0))
            .view(view(collect(|axis| axis.out_stride)?, out_offset))
            .view(view(collect(|axis| axis.stride)?, offset))
            .vec4([fill[0], fill[1], 0, 0]);
        let invocations = (dims.elements()? << split) / per_invocation;
        Some(Dispatch {
            kernel: &KERNEL,
            features: narrow(shift > 0),
            constants: vec![
                ("MODE", mode),
                ("SHIFT", shift),
                ("SPLIT", split),
                ("PER", per_invocation as u32),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: vec![self.out.clone(), x.clone()],
            workgroups: u32::try_from(invocations).ok()?.div_ceil(WORKGROUP),
        })
    }
}

impl Axis {
    const ONE: Self = Self {
        size: 1,
        inner: 1,
        before: 0,
        out_stride: 1,
        stride: 1,
    };

    /// This dimension and the next inner one merged, if they are contiguous to each other.
    fn merged(&self, next: Self, mode: &Mode) -> Option<Self> {
        if Some(self.out_stride) != next.out_stride.checked_mul(next.size) {
            return None;
        }
        if *mode == Mode::Repeat && self.inner == 1 {
            return Some(Self {
                size: self.size * next.size,
                ..next
            });
        }
        let strides = Some(self.stride) == next.stride.checked_mul(next.inner);
        let whole = next.size == next.inner && (strides || self.inner == 1);
        whole.then(|| Self {
            size: self.size * next.size,
            inner: self.inner * next.inner,
            before: self.before * next.size,
            ..next
        })
    }
}

/// How kernels move elements of a dtype: the base-2 logarithm of the elements of a word, and 1 if
/// an element takes two words. `None` for block dtypes.
pub(super) fn unit(dtype: DType) -> Option<(u32, u32)> {
    match (dtype.block_len(), dtype.block_bytes()) {
        (1, 1) => Some((2, 0)),
        (1, 2) => Some((1, 0)),
        (1, 4) => Some((0, 0)),
        (1, 8) => Some((0, 1)),
        _ => None,
    }
}
