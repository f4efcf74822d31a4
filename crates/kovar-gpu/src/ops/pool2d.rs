//! Pooling over two dimensions.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::backend::Reason;
use kovar_core::ops::{Op, Pool2d, PoolKind};

use super::{Entry, FLOATS, Planned, images, no_kernel};
use crate::kernel::{Access, Kernel};
use crate::program::Resolver;
use crate::seam::Caps;

static KERNEL: Kernel = Kernel {
    file: "pool2d",
    entry: "pool2d",
    bindings: &[Access::Write, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: refused,
    plan,
};

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
    /// operation's, but no more than once the padding that those elements can be away from it, so that
    /// none of its sizes is much above `size`.
    fn new(op: &Pool2d, axis: usize, size: usize, count: usize) -> Self {
        let stride = if count <= 1 { 1 } else { op.stride[axis] };
        let reach = count.saturating_sub(1).saturating_mul(stride);
        // No window begins behind the first element if padding is more than all steps.
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
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let axis = |axis| axis_of(op, node, axis).ok_or_else(refused);
    let (rows, columns) = (axis(0)?, axis(1)?);
    let divisor = match op.kind {
        PoolKind::Average {
            count_include_pad: true,
        } => op.kernel[0] as f32 * op.kernel[1] as f32,
        _ => 0.0,
    };
    let parts = images::parts(caps, &y, &x, &|range| rows.sources(range));
    let mut dispatches = Vec::new();
    for part in parts.ok_or_else(refused)? {
        let params = part
            .params(caps)
            .vec4(rows.params())
            .vec4(columns.params())
            .vec4([part.y_row as u32, part.x_row as u32, 0, 0])
            .floats([divisor, 0.0, 0.0, 0.0]);
        let greatest = u32::from(op.kind == PoolKind::Max);
        let dispatch = part.dispatch(caps, &KERNEL, params, vec![("GREATEST", greatest)]);
        dispatches.push(dispatch.ok_or_else(refused)?);
    }
    Ok(dispatches)
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
