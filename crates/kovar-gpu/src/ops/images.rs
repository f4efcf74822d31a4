//! Operations that compute each row of an image from some rows of another one.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::backend::Reason;

use super::pieces::{MAX_ELEMENTS, fits, per_word, slice};
use super::{Planned, WORKGROUP, code, narrow, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::{Operand, four};

/// A tile of images `[batch, channels, h, w]`: rows of the result, and the rows of `x` that they
/// need.
pub(super) struct Tile {
    y: Operand,
    x: Operand,
    /// The first row of each.
    pub y_row: usize,
    pub x_row: usize,
}

/// Why images are refused: a size is beyond what kernels count, or the `rows` rows of `x` that a
/// row of the result needs are beyond a binding.
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

/// Plans `kernel` on a node's result and first operand. `sources` gives the rows of the operand
/// that rows of the result need. `params` appends a tile's parameters to the dims and views.
pub(super) fn plan(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    kernel: &'static Kernel,
    constants: &[(&'static str, u32)],
    sources: &dyn Fn(Range<usize>) -> Range<usize>,
    params: impl Fn(&Tile, Params) -> Params,
) -> Planned {
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let plan = || {
        let mut tiles = Vec::new();
        let rows = 0..*y.layout.dims().get(2)?;
        cut(caps, [&y, &x], rows, sources, &mut tiles)?;
        let dispatch = |tile: Tile| {
            let params = params(&tile, tile.params(caps));
            tile.dispatch(caps, kernel, params, constants)
        };
        tiles.into_iter().map(dispatch).collect::<Option<_>>()
    };
    plan().ok_or_else(|| no_kernel(resolver.shared, node))
}

/// Appends the tiles of rows `rows` of `y`. `y` and `x` have all their rows.
fn cut(
    caps: &Caps,
    [y, x]: [&Operand; 2],
    rows: Range<usize>,
    sources: &dyn Fn(Range<usize>) -> Range<usize>,
    all: &mut Vec<Tile>,
) -> Option<()> {
    if y.layout.elements() == 0 {
        return Some(());
    }
    let from = sources(rows.clone());
    let tile = Tile {
        y: slice(y, 2, rows.clone())?,
        x: slice(x, 2, from.clone())?,
        y_row: rows.start,
        x_row: from.start,
    };
    let countable = tile.y.layout.elements() <= MAX_ELEMENTS;
    if countable && fits(caps, &tile.y) && fits(caps, &tile.x) {
        all.push(tile);
        return Some(());
    }
    let dims = y.layout.dims();
    if let Some(dim) = (0..2).find(|&dim| dims[dim] > 1) {
        let size = dims[dim];
        for range in [0..size / 2, size / 2..size] {
            let images = [slice(y, dim, range.clone())?, slice(x, dim, range)?];
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

impl Tile {
    /// The parameters that kernels on images begin with.
    fn params(&self, caps: &Caps) -> Params {
        let view = |image: &Operand| image.view(image.layout.strides(), caps.binding_alignment);
        Params::new()
            .vec4(four(self.y.layout.dims(), 1))
            .view(view(&self.y))
            .view(view(&self.x))
    }

    /// A dispatch with an invocation for each element of the result, or for two.
    fn dispatch(
        self,
        caps: &Caps,
        kernel: &'static Kernel,
        params: Params,
        constants: &[(&'static str, u32)],
    ) -> Option<Dispatch> {
        let out = self.y.view(self.y.layout.strides(), caps.binding_alignment);
        let n = u32::try_from(self.y.layout.dims().from_end(0)).ok()?;
        let is_narrow = self.y.dtype.block_bytes() == 2;
        let per = per_word(&out, n, if is_narrow { 2 } else { 1 });
        let mut constants = constants.to_vec();
        constants.extend([
            ("OUT_DTYPE", code(self.y.dtype)),
            ("A_DTYPE", code(self.x.dtype)),
            ("PER", per),
            ("WORKGROUP", WORKGROUP),
        ]);
        let invocations = u32::try_from(self.y.layout.elements()).ok()? / per;
        Some(Dispatch {
            kernel,
            features: narrow(is_narrow),
            constants,
            params: params.finish(),
            operands: vec![self.y, self.x],
            workgroups: invocations.div_ceil(WORKGROUP),
        })
    }
}
