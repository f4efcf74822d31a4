//! Images of which each row follows from some rows of another one, cut until kernels can take
//! them.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::backend::Reason;

use super::pieces::{MAX_ELEMENTS, fits};
use super::{WORKGROUP, code};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, four};

/// Images `[batch, channels, h, w]` and the rows of theirs that are bound.
pub(super) struct Part {
    pub y: Operand,
    pub x: Operand,
    /// The first rows.
    pub y_row: usize,
    pub x_row: usize,
}

/// Why images cannot be taken: sizes beyond what kernels count, or the `rows` rows of `x` behind a
/// row of the result beyond a binding.
pub(super) fn refused(caps: &Caps, node: NodeRef<'_>, rows: usize) -> Option<Reason> {
    const LARGEST: usize = 1 << 29;
    let (x, y) = (node.input(0)?, node.output());
    let bytes = |value: &kovar_core::Value, rows: usize| {
        let [row, column] = [1, 0].map(|i| value.layout.stride_from_end(i));
        let columns = value.dims().from_end(0).saturating_sub(1);
        let span = row.saturating_mul(rows.min(value.dims().from_end(1)).saturating_sub(1));
        let span = span.saturating_add(column.saturating_mul(columns));
        span.saturating_mul(value.dtype.block_bytes()) as u64
    };
    let limit = caps
        .max_binding_bytes
        .saturating_sub(2 * caps.binding_alignment);
    for (operand, value, rows) in [("x", x, rows), ("result", y, 1)] {
        let large = value.dims().iter().any(|&size| size > LARGEST);
        if large || bytes(value, rows) > limit {
            return Some(Reason::Layout {
                op: node.op().name(),
                operand,
            });
        }
    }
    None
}

/// The parts of an image `y` whose rows follow from those rows of `x` that `sources` tells.
pub(super) fn parts(
    caps: &Caps,
    y: &Operand,
    x: &Operand,
    sources: &dyn Fn(Range<usize>) -> Range<usize>,
) -> Option<Vec<Part>> {
    let rows = 0..*y.layout.dims().get(2)?;
    let mut all = Vec::new();
    cut(caps, [y, x], rows, sources, &mut all)?;
    Some(all)
}

fn window(operand: &Operand, dim: usize, range: Range<usize>) -> Option<Operand> {
    Some(operand.with_layout(operand.layout.slice(dim, range)?))
}

/// `y` and `x` have all their rows, of which `rows` are wanted.
fn cut(
    caps: &Caps,
    [y, x]: [&Operand; 2],
    rows: Range<usize>,
    sources: &dyn Fn(Range<usize>) -> Range<usize>,
    all: &mut Vec<Part>,
) -> Option<()> {
    if y.layout.elements() == 0 {
        return Some(());
    }
    let from = sources(rows.clone());
    let part = Part {
        y: window(y, 2, rows.clone())?,
        x: window(x, 2, from.clone())?,
        y_row: rows.start,
        x_row: from.start,
    };
    let small = part.y.layout.elements() <= MAX_ELEMENTS;
    if small && fits(caps, &part.y) && fits(caps, &part.x) {
        all.push(part);
        return Some(());
    }
    let dims = y.layout.dims();
    if let Some(dim) = (0..2).find(|&dim| dims[dim] > 1) {
        let size = dims[dim];
        for range in [0..size / 2, size / 2..size] {
            let images = [window(y, dim, range.clone())?, window(x, dim, range)?];
            cut(caps, [&images[0], &images[1]], rows.clone(), sources, all)?;
        }
        return Some(());
    }
    let middle = rows.start + rows.len() / 2;
    if middle == rows.start {
        return None;
    }
    cut(caps, [y, x], rows.start..middle, sources, all)?;
    cut(caps, [y, x], middle..rows.end, sources, all)
}

impl Part {
    /// The parameters that kernels on images begin with.
    pub fn params(&self, caps: &Caps) -> Params {
        let view = |image: &Operand| image.view(image.layout.strides(), caps.binding_alignment);
        Params::new()
            .vec4(four(self.y.layout.dims(), 1))
            .view(view(&self.y))
            .view(view(&self.x))
    }

    /// A dispatch of an invocation for each element, or for two.
    pub fn dispatch(
        self,
        caps: &Caps,
        kernel: &'static Kernel,
        params: Params,
        mut constants: Vec<(&'static str, u32)>,
    ) -> Option<Dispatch> {
        let out = self.y.view(self.y.layout.strides(), caps.binding_alignment);
        let [outer @ .., last] = out.strides;
        let narrow = self.y.dtype.block_bytes() == 2;
        let pairs = narrow
            && last == 1
            && self.y.layout.dims().from_end(0).is_multiple_of(2)
            && outer.iter().chain([&out.offset]).all(|step| step % 2 == 0);
        let per = if pairs { 2 } else { 1 };
        constants.extend([
            ("OUT_DTYPE", code(self.y.dtype)),
            ("A_DTYPE", code(self.x.dtype)),
            ("PER", per),
            ("WORKGROUP", WORKGROUP),
        ]);
        let invocations = u32::try_from(self.y.layout.elements()).ok()? / per;
        Some(Dispatch {
            kernel,
            features: if narrow {
                Features::NARROW
            } else {
                Features::NONE
            },
            constants,
            params: params.finish(),
            operands: vec![self.y, self.x],
            workgroups: invocations.div_ceil(WORKGROUP),
        })
    }
}
