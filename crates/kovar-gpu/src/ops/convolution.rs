//! Convolutions over two dimensions and their adjoints.

use kovar_core::backend::Reason;
use kovar_core::ops::{Op, Precision};
use kovar_core::{DType, Dims, Layout, NodeRef};

use super::pieces::slice;
use super::product::policy::{self, ConvolutionChoice};
use super::product::{self, Matrices, Product};
use super::{Entry, FLOATS, Planned, code, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::Operand;

static TILED: Kernel = Kernel::new("convolution", 3);

static DIRECT: Kernel = Kernel::new("convolution_direct", 3);

static MATRIX: Kernel = Kernel::new("convolution_matrix", 3);

/// The attributes of a convolution or its adjoint.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    /// Whether it is the adjoint.
    adjoint: bool,
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    precision: Precision,
}

impl Attributes {
    fn of(op: &Op) -> Option<Self> {
        Some(match op {
            Op::Conv2d(op) => Self {
                adjoint: false,
                stride: op.stride,
                padding: op.padding,
                dilation: op.dilation,
                groups: op.groups,
                precision: op.precision,
            },
            Op::ConvTranspose2d(op) => Self {
                adjoint: true,
                stride: op.stride,
                padding: op.padding,
                dilation: op.dilation,
                groups: op.groups,
                precision: op.precision,
            },
            _ => return None,
        })
    }
}

/// The row of the table for both operations.
pub(super) const ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: |caps, node| {
        let op = Attributes::of(node.op())?;
        refuses(caps, node, op)
    },
    plan: plan_node,
};

fn plan_node(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let op = Attributes::of(node.op()).ok_or_else(refused)?;
    let out = resolver.output(node)?;
    let addend = if node.n_inputs() > 2 {
        let bias = resolver.input(node, 2)?;
        Some(addend(bias, &out.layout).ok_or_else(refused)?)
    } else {
        None
    };
    let convolution = Convolution {
        op,
        x: resolver.input(node, 0)?,
        weight: resolver.input(node, 1)?,
        addend,
        out,
    };
    plan(resolver.shared.device.caps(), convolution).ok_or_else(refused)
}

/// A convolution or its adjoint.
#[derive(Clone, Debug)]
struct Convolution {
    op: Attributes,
    /// `[batch, c_in, h, w]`
    x: Operand,
    /// `[c_out, c_in / groups, kh, kw]`; for an adjoint `[c_in, c_out / groups, kh, kw]`.
    weight: Operand,
    /// What is added, of the dims of the result.
    addend: Option<Operand>,
    /// `[batch, c_out, oh, ow]`
    out: Operand,
}

/// The dims along which convolutions are cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dim {
    Batch,
    Groups,
    In,
    Out,
}

/// The index of the dim that is cut in the layouts of `x`, the weight and the result.
type Cut = [Option<usize>; 3];

impl Convolution {
    fn size(&self, dim: Dim) -> usize {
        match dim {
            Dim::Batch => self.out.layout.dims()[0],
            Dim::Groups => self.op.groups,
            Dim::In => self.x.layout.dims()[1] / self.op.groups.max(1),
            Dim::Out => self.out.layout.dims()[1] / self.op.groups.max(1),
        }
    }

    fn cut(&self, dim: Dim) -> Cut {
        let (input, output) = if self.op.adjoint { (0, 1) } else { (1, 0) };
        match dim {
            Dim::Batch => [Some(0), None, Some(0)],
            Dim::Groups => [Some(1), Some(0), Some(1)],
            Dim::In => [Some(1), Some(input), None],
            Dim::Out => [None, Some(output), Some(1)],
        }
    }

    /// The piece from `start` on. Pieces of later input channels add to the sums of the first.
    fn piece(&self, dim: Dim, start: usize, size: usize) -> Option<Self> {
        let whole = self.size(dim);
        let slice = |operand: &Operand, at: Option<usize>| {
            let Some(at) = at else {
                return Some(operand.clone());
            };
            // All groups have the same number of channels.
            let unit = operand.layout.dims()[at] / whole;
            slice(operand, at, start * unit..(start + size) * unit)
        };
        let cut = self.cut(dim);
        let mut piece = Self {
            x: slice(&self.x, cut[0])?,
            weight: slice(&self.weight, cut[1])?,
            out: slice(&self.out, cut[2])?,
            addend: None,
            ..self.clone()
        };
        piece.addend = match &self.addend {
            _ if dim == Dim::In && start > 0 => Some(self.out.clone()),
            Some(addend) => Some(slice(addend, cut[2])?),
            None => None,
        };
        if dim == Dim::Groups {
            piece.op.groups = size;
        }
        Some(piece)
    }

    /// Pieces whose operands fit bindings, in the order to compute them.
    fn pieces(self, caps: &Caps) -> Option<Vec<Self>> {
        let limit = caps.max_binding_bytes.min(u32::MAX.into());
        let operands = [Some(&self.x), Some(&self.weight), Some(&self.out)];
        let addend = self.addend.as_ref();
        let large = operands
            .iter()
            .chain([&addend])
            .enumerate()
            .find(|(_, operand)| {
                operand.is_some_and(|operand| !operand.fits(caps.binding_alignment, limit))
            });
        let Some((which, Some(operand))) = large else {
            return Some(vec![self]);
        };
        let inner: &[Dim] = match (self.op.groups, self.out.dtype) {
            (1, DType::F32) => &[Dim::In, Dim::Out],
            // Rounding of partial sums to 16 bits would lose too much.
            (1, _) => &[Dim::Out],
            _ => &[Dim::Groups],
        };
        let reach = |&dim: &Dim| {
            let at = self.cut(dim)[which.min(2)]?;
            let reach = operand.layout.strides()[at] * (operand.layout.dims()[at] - 1);
            (self.size(dim) > 1).then_some(reach)
        };
        let dims = inner.iter().copied().chain([Dim::Batch]);
        let dim = dims
            .filter(|dim| reach(dim).is_some())
            .max_by_key(|dim| reach(dim))
            // Else the channels of all groups together are too large.
            .or_else(|| (self.op.groups > 1).then_some(Dim::Groups))?;
        let step = self.size(dim).div_ceil(2);
        if step == self.size(dim) {
            return None;
        }
        let mut all = Vec::new();
        for start in [0, step] {
            let size = step.min(self.size(dim) - start);
            all.extend(self.piece(dim, start, size)?.pieces(caps)?);
        }
        Some(all)
    }

    /// The convolution as a product, if its kernel has one tap and the image keeps its size.
    fn as_product(&self) -> Option<Product> {
        let taps = &self.weight.layout.dims()[2..];
        let plain = self.op.groups == 1 && self.op.stride == [1; 2] && self.op.padding == [0; 2];
        if !plain || taps != [1; 2] || self.op.adjoint {
            return None;
        }
        // Rows of the image are batches here. Contiguous ones are merged later.
        let pixels = |operand: &Operand| {
            let strides = operand.layout.strides();
            Matrices {
                offset: operand.layout.offset(),
                batch: vec![strides[0], strides[2]],
                row_stride: strides[3],
                column_stride: strides[1],
                operand: operand.clone(),
            }
        };
        let dims = self.out.layout.dims();
        Some(Product {
            batch: vec![dims[0], dims[2]],
            m: dims[3],
            n: dims[1],
            k: self.x.layout.dims()[1],
            a: pixels(&self.x),
            b: Matrices {
                offset: self.weight.layout.offset(),
                batch: vec![0; 2],
                row_stride: self.weight.layout.strides()[0],
                column_stride: self.weight.layout.strides()[1],
                operand: self.weight.clone(),
            },
            c: self.addend.as_ref().map(pixels),
            out: pixels(&self.out),
            alpha: 1.0,
            beta: 1.0,
            precision: self.op.precision,
        })
    }
}

/// Why a convolution is refused: a plane of an image is beyond the binding limit (for results of 16
/// bits all planes of a group), or distances are beyond what kernels count.
fn refuses(caps: &Caps, node: NodeRef<'_>, op: Attributes) -> Option<Reason> {
    let refused = |operand| {
        Some(Reason::Layout {
            op: node.op().name(),
            operand,
        })
    };
    let (x, weight) = (node.input(0)?, node.input(1)?);
    let countable = (0..2).all(|axis| {
        let [x, y, taps] = [x, node.output(), weight].map(|value| value.dims().get(2 + axis));
        let reach = |n: Option<&usize>, step: usize| n.copied().unwrap_or(0).checked_mul(step);
        let all = [
            reach(x, 1),
            reach(y, op.stride[axis]),
            reach(taps, op.dilation[axis]),
            Some(op.padding[axis]),
        ];
        let sum = all
            .into_iter()
            .try_fold(0usize, |sum, reach| sum.checked_add(reach?));
        sum.is_some_and(|sum| i32::try_from(sum).is_ok())
    });
    if !countable {
        return refused("x");
    }
    let limit = caps.max_binding_bytes.min(u32::MAX.into());
    // A narrow result needs all elements along K at once.
    let whole = node.output().dtype != DType::F32;
    let channels = [
        ("x", x, whole.then_some(1)),
        ("weight", weight, whole.then_some(usize::from(!op.adjoint))),
        ("result", node.output(), None),
    ];
    for (operand, value, whole) in channels {
        let reach = [Some(2), Some(3), whole].into_iter().flatten().map(|i| {
            // A weight has the channels of one group along dim 1, `x` those of all groups.
            let size = match value.dims()[i] {
                size if i == 1 && operand == "weight" => size,
                size if i < 2 => size / op.groups.max(1),
                size => size,
            };
            value.layout.strides()[i].saturating_mul(size.saturating_sub(1))
        });
        let reach = reach.fold(1usize, usize::saturating_add);
        let bytes = reach.saturating_mul(value.dtype.block_bytes());
        if bytes as u64 > limit.saturating_sub(caps.binding_alignment) {
            return refused(operand);
        }
    }
    None
}

/// The bias as an addend of the result's dims.
fn addend(bias: Operand, out: &Layout) -> Option<Operand> {
    let [channels] = **bias.layout.dims() else {
        return None;
    };
    let column = bias.layout.reshape(Dims::new(&[channels, 1, 1])?)?;
    let layout = column.broadcast_to(*out.dims())?;
    Some(bias.with_layout(layout))
}

/// Dispatches of a convolution whose result is not empty; `None` if [`refuses`] does.
fn plan(caps: &Caps, convolution: Convolution) -> Option<Vec<Dispatch>> {
    if let Some(product) = convolution.as_product() {
        return product::plan(caps, product);
    }
    let pieces = convolution.pieces(caps)?;
    pieces.iter().map(|piece| dispatch(caps, piece)).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn dispatch(caps: &Caps, piece: &Convolution) -> Option<Dispatch> {
    let Convolution {
        op, x, weight, out, ..
    } = piece;
    let Attributes {
        stride,
        padding,
        dilation,
        groups,
        ..
    } = *op;
    let [batch, c_in, height, width] = **x.layout.dims() else {
        return None;
    };
    let [_, c_out, rows, columns] = **out.layout.dims() else {
        return None;
    };
    let [first, _, kernel_rows, kernel_columns] = **weight.layout.dims() else {
        return None;
    };
    let group_stride = first / groups * weight.layout.strides()[0];
    let order = if op.adjoint {
        [1, 0, 2, 3]
    } else {
        [0, 1, 2, 3]
    };
    let sizes = |sizes: [usize; 4]| {
        let mut all = [0; 4];
        for (to, size) in all.iter_mut().zip(sizes) {
            *to = u32::try_from(size).ok()?;
        }
        Some(all)
    };
    let alignment = caps.binding_alignment;
    let view = |operand: &Operand| operand.view(operand.layout.strides(), alignment);
    let phases = |axis: usize, size: usize| {
        if op.adjoint {
            stride[axis].min(size)
        } else {
            1
        }
    };
    let axis = |axis: usize, size: usize| {
        sizes([
            phases(axis, size),
            stride[axis],
            dilation[axis],
            padding[axis],
        ])
    };
    let skip = |axis: usize| {
        let common = gcd(stride[axis], dilation[axis]);
        [stride[axis] / common, dilation[axis] / common]
    };
    let [vertical, horizontal] = [skip(0), skip(1)];
    // Empty factors are not read. The result is bound in their place.
    let empty = c_in == 0;
    let [x_window, weight_window] = [x, weight].map(|operand| if empty { out } else { operand });
    let addend = piece.addend.as_ref();
    let weight_layout = weight.layout.permute(&order)?;
    let params = Params::new()
        .view(view(x))
        .view(weight.view(weight_layout.strides(), alignment))
        .view(addend.map_or_else(Default::default, view))
        .view(view(out))
        .vec4(sizes([batch, c_in / groups, height, width])?)
        .vec4(sizes([groups, c_out / groups, rows, columns])?)
        .vec4(sizes([kernel_rows, kernel_columns, group_stride, 0])?)
        .vec4(axis(0, rows)?)
        .vec4(axis(1, columns)?)
        .vec4(sizes([
            vertical[0],
            vertical[1],
            horizontal[0],
            horizontal[1],
        ])?);
    let (row_phases, column_phases) = (phases(0, rows), phases(1, columns));
    let pixels = rows
        .div_ceil(row_phases)
        .checked_mul(columns.div_ceil(column_phases))?
        .checked_mul(batch)?;
    u32::try_from(pixels).ok()?;
    let phases = groups.checked_mul(row_phases)?.checked_mul(column_phases)?;
    let channels = c_out / groups;
    let mut constants = vec![
        ("A_DTYPE", code(x_window.dtype)),
        ("B_DTYPE", code(weight_window.dtype)),
        ("C_DTYPE", addend.map_or(0, |addend| code(addend.dtype))),
        ("OUT_DTYPE", code(out.dtype)),
        ("ADDEND", u32::from(addend.is_some())),
        ("ADJOINT", u32::from(op.adjoint)),
    ];
    let dtypes = [x.dtype, weight.dtype];
    let matrices = policy::matrix_tile(caps, dtypes, op.precision);
    let mut features = product::variant(false, out.dtype);
    let (kernel, tiles) = match policy::choose_convolution(phases, pixels, channels, matrices) {
        ConvolutionChoice::Matrix(tile) => {
            features = features.with(product::matrix_variant(&tile, &mut constants));
            let columns = channels.div_ceil(tile.span);
            (&MATRIX, pixels.div_ceil(tile.span).checked_mul(columns)?)
        }
        ConvolutionChoice::Direct => {
            constants.push(("WORKGROUP", policy::DIRECT_WORKGROUP));
            let quads = channels.div_ceil(4);
            let span = 2 * policy::DIRECT_WORKGROUP as usize;
            (&DIRECT, pixels.div_ceil(span).checked_mul(quads)?)
        }
        ConvolutionChoice::Tile { large } => {
            let span = product::tile_constants(large, &mut constants);
            let columns = channels.div_ceil(span);
            (&TILED, pixels.div_ceil(span).checked_mul(columns)?)
        }
    };
    Some(Dispatch {
        kernel,
        features,
        constants,
        params: params.finish(),
        operands: vec![
            out.clone(),
            x_window.clone(),
            weight_window.clone(),
            addend.unwrap_or(out).clone(),
        ],
        workgroups: u32::try_from(tiles.checked_mul(phases)?).ok()?,
    })
}
