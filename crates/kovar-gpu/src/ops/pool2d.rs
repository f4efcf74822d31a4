//! Pooling over two dimensions.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::backend::Reason;
use kovar_core::ops::{Op, Pool2d, PoolKind};

use super::{Entry, Planned, images, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;
use crate::seam::Caps;

static KERNEL: Kernel = Kernel::new("pool2d", 1);

pub(super) static ENTRY: Entry = Entry::floats(refused, plan);

/// A window that slides along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    kernel: usize,
    stride: usize,
    padding: usize,
    size: usize,
}

impl Axis {
    /// The window over `size` elements at `count` positions. It covers the same elements as the
    /// operation's window, but leaves out padding that no position reaches, so that none of its
    /// sizes is much above `size`.
    fn new(op: &Pool2d, axis: usize, size: usize, count: usize) -> Self {
        let stride = if count <= 1 { 1 } else { op.stride[axis] };
        let reach = count.saturating_sub(1).saturating_mul(stride);
        // If padding exceeds all steps, no window begins after the first element.
        let beyond = op.padding[axis].saturating_sub(reach);
        let padding = op.padding[axis] - beyond;
        let kernel = (op.kernel[axis] - beyond).min(size.saturating_add(padding));
        Self {
            kernel,
            stride,
            padding,
            size,
        }
    }

    /// The elements that windows cover.
    fn sources(self, positions: Range<usize>) -> Range<usize> {
        let start = (positions.start * self.stride).saturating_sub(self.padding);
        let last = (positions.end - 1) * self.stride + self.kernel;
        start..last.saturating_sub(self.padding).min(self.size)
    }

    fn params(self) -> [u32; 4] {
        // Sizes are of 31 bits at most.
        [self.kernel, self.stride, self.padding, self.size].map(|n| n as u32)
    }
}

fn axis_of(op: &Pool2d, node: NodeRef<'_>, axis: usize) -> Option<Axis> {
    let size = node.input(0)?.dims().from_end(1 - axis);
    Some(Axis::new(
        op,
        axis,
        size,
        node.output().dims().from_end(1 - axis),
    ))
}

fn refused(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    let Op::Pool2d(op) = node.op() else {
        return None;
    };
    images::refused(caps, node, axis_of(op, node, 0)?.kernel)
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Pool2d(op) = node.op() else {
        return Err(refused());
    };
    let axis = |axis| axis_of(op, node, axis).ok_or_else(refused);
    let (rows, columns) = (axis(0)?, axis(1)?);
    let divisor = match op.kind {
        PoolKind::Average {
            count_include_pad: true,
        } => op.kernel[0] as f32 * op.kernel[1] as f32,
        _ => 0.0,
    };
    let constants = [("GREATEST", u32::from(op.kind == PoolKind::Max))];
    let sources = |range| rows.sources(range);
    images::plan(
        resolver,
        node,
        &KERNEL,
        &constants,
        &sources,
        |tile, params| {
            params
                .vec4(rows.params())
                .vec4(columns.params())
                .vec4([tile.y_row as u32, tile.x_row as u32, 0, 0])
                .floats([divisor, 0.0, 0.0, 0.0])
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_windows_cover_the_same_elements() {
        for (kernel, stride, padding, size) in [
            (3, 2, 1, 9),
            (2, 2, 0, 8),
            (1 << 40, 1, 1 << 39, 4),
            (1 << 40, 1 << 50, 1 << 39, 7),
            (8, 3, 4, 1),
        ] {
            let op = Pool2d {
                kind: PoolKind::Max,
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [padding; 2],
            };
            let count = (size + 2 * padding - kernel) / stride + 1;
            let axis = Axis::new(&op, 0, size, count);
            assert!(axis.kernel.max(axis.stride).max(axis.padding) <= 2 * size + stride.min(9));
            for i in 0..count {
                let start = (i * stride).saturating_sub(padding);
                let end = (i * stride + kernel).saturating_sub(padding).min(size);
                assert_eq!(axis.sources(i..i + 1), start..end, "{op:?} at {i}");
            }
        }
    }
}
