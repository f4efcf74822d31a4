//! Group normalisation, and layer normalisation of long rows.

use kovar_core::ops::Op;
use kovar_core::{DType, Dims, Layout, NodeRef, collapse};

use super::rows::{Split, dtypes, features, refuse_large};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::scratch;
use crate::seam::Caps;
use crate::view::{Operand, View, four};

static MOMENTS: Kernel = Kernel {
    file: "group_norm",
    entry: "group_norm_moments",
    bindings: &[Access::Write, Access::Read],
};

static KERNEL: Kernel = Kernel {
    file: "group_norm",
    entry: "group_norm",
    bindings: &[
        Access::Write,
        Access::Read,
        Access::Read,
        Access::Read,
        Access::Read,
    ],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: |caps, node| {
        refuse_large(caps, node, |i, layout| match group_channels(node) {
            Some(channels) if i == 0 || i == node.n_inputs() => {
                layout.slice(0, 0..1)?.slice(1, 0..channels)
            }
            _ => Some(*layout),
        })
    },
    plan,
};

/// The channels of a group.
fn group_channels(node: NodeRef<'_>) -> Option<usize> {
    let Op::GroupNorm(op) = node.op() else {
        return None;
    };
    node.output().dims().get(1)?.checked_div(op.groups)
}

/// The weight and the bias of a norm.
pub(super) struct Factors {
    weight: Option<(Operand, View)>,
    bias: Option<(Operand, View)>,
    pub eps: f32,
}

impl Factors {
    /// Those of a node, its operands 1 and 2 as far as it has them. `None` if they are too large.
    pub fn of(caps: &Caps, factors: &[Operand], eps: f32) -> Option<Self> {
        let factor = |i: usize| {
            let factor = factors.get(i);
            let factor = factor.map(|factor| Some((factor.clone(), factor.vector(caps)?)));
            factor.map_or(Some(None), |factor| factor.map(Some))
        };
        Some(Self {
            weight: factor(0)?,
            bias: factor(1)?,
            eps,
        })
    }

    /// Their operands; `instead` is bound in place of those that aren't there.
    pub fn operands(&self, instead: &Operand) -> [Operand; 2] {
        [&self.weight, &self.bias].map(|factor| {
            let operand = factor.as_ref().map(|(operand, _)| operand);
            operand.unwrap_or(instead).clone()
        })
    }

    /// Their views.
    pub fn views(&self, params: Params) -> Params {
        let view = |factor: &Option<(Operand, View)>| factor.as_ref().map(|(_, view)| *view);
        let params = params.view(view(&self.weight).unwrap_or_default());
        params.view(view(&self.bias).unwrap_or_default())
    }

    /// Which there are.
    pub fn flags(&self, params: Params) -> Params {
        let params = params.u32(self.weight.is_some().into());
        params.u32(self.bias.is_some().into())
    }
}

/// Groups of channels in `x` and in `y`.
pub(super) struct Groups {
    pub y: Operand,
    pub x: Operand,
    /// Three sizes that number the groups, and the channels of a group.
    pub sizes: [u32; 4],
    /// The sizes within a channel.
    pub within: [u32; 4],
    /// The views of `y` and `x` along `sizes`, and their strides along `within`.
    pub views: [(View, [u32; 4]); 2],
    /// The channel of the factors that groups begin at, and from one to the next.
    pub channels: [u32; 2],
}

impl Groups {
    /// The dispatches that normalise them; `None` if their sizes overflow.
    pub fn plan(self, factors: &Factors) -> Option<[Dispatch; 2]> {
        let product = |sizes: &[u32]| sizes.iter().try_fold(1u32, |all, &n| all.checked_mul(n));
        let [outer @ .., channels] = self.sizes;
        let (count, channel_len) = (product(&outer)?, product(&self.within)?);
        let group_len = channels.checked_mul(channel_len)?;
        let split = Split::of_group(group_len);
        let workgroups = count.checked_mul(split.chunks)?;
        let [(y_view, y_steps), (x_view, x_steps)] = self.views;
        let params = Params::new().vec4(self.sizes).vec4(self.within);
        let params = params.view(y_view).view(x_view).vec4(y_steps).vec4(x_steps);
        let params = factors.views(params).u32(channel_len).u32(group_len);
        let params = params.u32(split.chunk).u32(split.chunks).u32(count);
        let [first, step] = self.channels;
        let params = params.u32(first).u32(step).f32(factors.eps);
        let params = factors.flags(params).finish();
        let moments = scratch::operand(0..(workgroups as usize).checked_mul(4)?)?;
        let even = y_view.strides.iter().chain(&y_steps[..3]);
        let mut even = even.chain([&y_view.offset, &channel_len]);
        let pairs = self.y.dtype != DType::F32
            && y_steps[3] == 1
            && self.within[3] == channel_len
            && even.all(|x| x % 2 == 0);
        let first = vec![moments.clone(), self.x.clone()];
        let [weight, bias] = factors.operands(&self.x);
        let second = vec![self.y, self.x, weight, bias, moments.clone()];
        let mut constants = dtypes(&second);
        constants.push(("PER", if pairs { 2 } else { 1 }));
        Some([
            Dispatch {
                kernel: &MOMENTS,
                features: features(&moments),
                constants: dtypes(&first),
                params: params.clone(),
                operands: first,
                workgroups,
            },
            Dispatch {
                kernel: &KERNEL,
                features: features(&second[0]),
                constants,
                params,
                operands: second,
                workgroups,
            },
        ])
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::GroupNorm(op) = node.op() else {
        return Err(refused());
    };
    let operands = [resolver.output(node)?, resolver.input(node, 0)?];
    let factors = (1..node.n_inputs()).map(|i| resolver.input(node, i));
    let factors = factors.collect::<Result<Vec<_>, _>>()?;
    let caps = resolver.shared.device.caps();
    let plan = || {
        let channels = group_channels(node)?;
        let factors = Factors::of(caps, &factors, op.eps)?;
        let mut dispatches = Vec::new();
        cut(caps, operands, channels, 0, &factors, &mut dispatches)?;
        Some(dispatches)
    };
    plan().ok_or_else(refused)
}

/// Plans `y` and `x`, whose first channel is number `first` of the factors', cut along batches and
/// groups until they fit into bindings.
fn cut(
    caps: &Caps,
    [y, x]: [Operand; 2],
    channels: usize,
    first: usize,
    factors: &Factors,
    dispatches: &mut Vec<Dispatch>,
) -> Option<()> {
    let dims = *y.layout.dims();
    let fits = |operand: &Operand| operand.fits(caps.binding_alignment, caps.max_binding_bytes);
    if !(fits(&y) && fits(&x)) {
        let (dim, unit) = if dims[0] > 1 { (0, 1) } else { (1, channels) };
        let units = dims[dim] / unit;
        let step = units.div_ceil(2) * unit;
        if units < 2 {
            return None;
        }
        for start in [0, step] {
            let end = (start + step).min(dims[dim]);
            let part = |operand: &Operand| {
                Some(operand.with_layout(operand.layout.slice(dim, start..end)?))
            };
            let first = first + dim * start;
            let parts = [part(&y)?, part(&x)?];
            cut(caps, parts, channels, first, factors, dispatches)?;
        }
        return Some(());
    }
    let within = |operand: &Operand| {
        let layout = &operand.layout;
        let sizes = Dims::new(&layout.dims()[2..])?;
        Layout::strided(sizes, Dims::new(&layout.strides()[2..])?, 0)
    };
    let merged = collapse(&[&within(&y)?, &within(&x)?])?;
    let view = |operand: &Operand, steps: &Dims| {
        let strides = operand.layout.strides();
        let strides = [strides[0], strides[1].checked_mul(channels)?, strides[1]];
        let view = operand.view(&Dims::new(&strides)?, caps.binding_alignment);
        Some((view, four(steps, 0)))
    };
    let sizes = Dims::new(&[dims[0], dims[1] / channels, channels])?;
    let views = [view(&y, &merged.strides[0])?, view(&x, &merged.strides[1])?];
    let channels = [first, channels].map(|n| u32::try_from(n).ok());
    let groups = Groups {
        sizes: four(&sizes, 1),
        within: four(&merged.dims, 1),
        views,
        channels: [channels[0]?, channels[1]?],
        y,
        x,
    };
    dispatches.extend(groups.plan(factors)?);
    Some(())
}
