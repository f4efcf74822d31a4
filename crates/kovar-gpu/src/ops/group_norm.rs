//! Group normalisation, and layer normalisation of long rows.

use kovar_core::error::DeviceError;
use kovar_core::ops::Op;
use kovar_core::{DType, Dims, Layout, NodeRef, collapse};

use super::pieces::{fits, slice};
use super::rows::{Split, dtypes, features, refuse_large};
use super::{Entry, FLOATS, Planned, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::scratch;
use crate::seam::Caps;
use crate::view::{Operand, View, four};

static MOMENTS: Kernel = Kernel::new("group_norm", 1).entry("group_norm_moments");

static KERNEL: Kernel = Kernel::new("group_norm", 4);

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

/// The affine part of a norm, of `y = normalised(x) * weight + bias`, and the norm's epsilon.
pub(super) struct Affine {
    weight: Option<(Operand, View)>,
    bias: Option<(Operand, View)>,
    eps: f32,
}

impl Affine {
    /// That of a node, whose operands 1 and 2 are the weight and the bias, if it has them. `None`
    /// if they are too large.
    pub fn of(
        resolver: &Resolver<'_>,
        node: NodeRef<'_>,
        eps: f32,
    ) -> Result<Option<Self>, DeviceError> {
        let caps = resolver.shared.device.caps();
        let mut factors = [None, None];
        for (i, factor) in factors.iter_mut().enumerate() {
            if node.n_inputs() > i + 1 {
                let operand = resolver.input(node, i + 1)?;
                let Some(view) = operand.vector(caps) else {
                    return Ok(None);
                };
                *factor = Some((operand, view));
            }
        }
        let [weight, bias] = factors;
        Ok(Some(Self { weight, bias, eps }))
    }

    /// The operands to bind; `instead` stands in for an absent one.
    pub fn operands(&self, instead: &Operand) -> [Operand; 2] {
        [&self.weight, &self.bias].map(|factor| {
            let operand = factor.as_ref().map(|(operand, _)| operand);
            operand.unwrap_or(instead).clone()
        })
    }

    /// Appends `Affine` of `shared/affine.wgsl`.
    pub fn params(&self, params: Params) -> Params {
        let view = |factor: &Option<(Operand, View)>| factor.as_ref().map(|(_, view)| *view);
        let params = params.view(view(&self.weight).unwrap_or_default());
        let params = params.view(view(&self.bias).unwrap_or_default());
        let params = params.u32(self.weight.is_some().into());
        params.u32(self.bias.is_some().into()).f32(self.eps)
    }
}

/// Groups of channels in `x` and in `y`.
pub(super) struct Groups {
    pub y: Operand,
    pub x: Operand,
    /// Three outer sizes, whose product is the number of groups, and the channels of a group.
    pub sizes: [u32; 4],
    /// The sizes within a channel.
    pub within: [u32; 4],
    /// The views of `y` and `x` along `sizes`, and their strides along `within`.
    pub views: [(View, [u32; 4]); 2],
    /// The channel of the weight at which the first group begins, and the distance between groups.
    pub channels: [u32; 2],
}

impl Groups {
    /// The dispatches that normalise them; `None` if their sizes overflow.
    pub fn plan(self, affine: &Affine) -> Option<[Dispatch; 2]> {
        let product = |sizes: &[u32]| sizes.iter().try_fold(1u32, |all, &n| all.checked_mul(n));
        let [outer @ .., channels] = self.sizes;
        let (count, channel_len) = (product(&outer)?, product(&self.within)?);
        let group_len = channels.checked_mul(channel_len)?;
        let split = Split::of_group(group_len);
        let workgroups = count.checked_mul(split.chunks)?;
        let [(y_view, y_steps), (x_view, x_steps)] = self.views;
        let params = Params::new().vec4(self.sizes).vec4(self.within);
        let params = params.view(y_view).view(x_view).vec4(y_steps).vec4(x_steps);
        let params = params.u32(channel_len).u32(group_len);
        let params = params.u32(split.chunk).u32(split.chunks).u32(count);
        let [first, step] = self.channels;
        let params = affine.params(params.u32(first).u32(step)).finish();
        let moments = scratch::operand(0..(workgroups as usize).checked_mul(4)?)?;
        let even = y_view.strides.iter().chain(&y_steps[..3]);
        let mut even = even.chain([&y_view.offset, &channel_len]);
        let pairs = self.y.dtype != DType::F32
            && y_steps[3] == 1
            && self.within[3] == channel_len
            && even.all(|x| x % 2 == 0);
        let first = vec![moments.clone(), self.x.clone()];
        let [weight, bias] = affine.operands(&self.x);
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
    let affine = Affine::of(resolver, node, op.eps)?.ok_or_else(refused)?;
    let channels = group_channels(node).ok_or_else(refused)?;
    let (caps, mut dispatches) = (resolver.shared.device.caps(), Vec::new());
    cut(caps, operands, channels, 0, &affine, &mut dispatches).ok_or_else(refused)?;
    Ok(dispatches)
}

/// Plans `y` and `x`, whose first channel is channel `first` of the weight and the bias, cut along
/// batches and groups until they fit bindings.
fn cut(
    caps: &Caps,
    [y, x]: [Operand; 2],
    channels: usize,
    first: usize,
    affine: &Affine,
    dispatches: &mut Vec<Dispatch>,
) -> Option<()> {
    let dims = *y.layout.dims();
    if !(fits(caps, &y) && fits(caps, &x)) {
        let (dim, unit) = if dims[0] > 1 { (0, 1) } else { (1, channels) };
        let units = dims[dim] / unit;
        let step = units.div_ceil(2) * unit;
        if units < 2 {
            return None;
        }
        for start in [0, step] {
            let end = (start + step).min(dims[dim]);
            let first = first + dim * start;
            let pieces = [slice(&y, dim, start..end)?, slice(&x, dim, start..end)?];
            cut(caps, pieces, channels, first, affine, dispatches)?;
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
    dispatches.extend(groups.plan(affine)?);
    Some(())
}
