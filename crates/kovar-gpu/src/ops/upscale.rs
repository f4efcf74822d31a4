//! Images of another size.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UpscaleMode};

use super::{Entry, FLOATS, Planned, images, no_kernel};
use crate::kernel::{Access, Kernel};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel {
    file: "upscale",
    entry: "upscale",
    bindings: &[Access::Write, Access::Read],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    refuses: |caps, node| images::refused(caps, node, 2),
    plan,
};

/// Where pixel `i` is along an axis: at `max(i factor + plus - minus, 0) / parts`.
#[derive(Clone, Copy)]
struct Map {
    factor: usize,
    plus: usize,
    minus: usize,
    parts: usize,
    /// The last pixel of the source, and how many the result has.
    last: usize,
    n: usize,
}

impl Map {
    fn new(mode: UpscaleMode, size: usize, n: usize) -> Self {
        let last = size.saturating_sub(1);
        let (factor, plus, minus, parts) = match mode {
            UpscaleMode::Nearest => (size, 0, 0, n),
            UpscaleMode::Bilinear {
                align_corners: true,
            } => (if n == 1 { 0 } else { last }, 0, 0, (n - 1).max(1)),
            // t = ((2 i + 1) size - n) / (2 n)
            UpscaleMode::Bilinear {
                align_corners: false,
            } => (2 * size, size, n, 2 * n),
        };
        Self {
            factor,
            plus,
            minus,
            parts,
            last,
            n,
        }
    }

    /// The pixels of the source behind some of the result.
    fn sources(self, range: Range<usize>) -> Range<usize> {
        let place =
            |i: usize| (i * self.factor + self.plus).saturating_sub(self.minus) / self.parts;
        let end = place(range.end - 1) + 2;
        place(range.start).min(self.last)..end.min(self.last + 1)
    }

    /// Whether the kernel needs products of more than 32 bits.
    fn is_wide(self) -> bool {
        self.n * self.factor + self.plus > u32::MAX as usize
    }

    fn params(self) -> [u32; 4] {
        // Sizes are of 29 bits at most.
        [self.factor, self.plus, self.minus, self.parts].map(|n| n as u32)
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Upscale(op) = node.op() else {
        return Err(refused());
    };
    let (y, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    let caps = resolver.shared.device.caps();
    let map = |axis: usize| Map::new(op.mode, x.layout.dims().from_end(1 - axis), op.size[axis]);
    let [rows, columns] = [0, 1].map(map);
    let parts = images::parts(caps, &y, &x, &|range| rows.sources(range));
    let mut dispatches = Vec::new();
    for part in parts.ok_or_else(refused)? {
        let params = part
            .params(caps)
            .vec4(rows.params())
            .vec4(columns.params())
            .vec4([part.y_row, part.x_row, rows.last, columns.last].map(|n| n as u32));
        let constants = vec![
            ("LINEAR", u32::from(op.mode != UpscaleMode::Nearest)),
            ("WIDE", u32::from(rows.is_wide() || columns.is_wide())),
        ];
        let dispatch = part.dispatch(caps, &KERNEL, params, constants);
        dispatches.push(dispatch.ok_or_else(refused)?);
    }
    Ok(dispatches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_part_are_those_that_its_pixels_lie_between() {
        let corners = UpscaleMode::Bilinear {
            align_corners: true,
        };
        let edges = UpscaleMode::Bilinear {
            align_corners: false,
        };
        assert_eq!(Map::new(UpscaleMode::Nearest, 4, 8).sources(2..5), 1..4);
        assert_eq!(Map::new(corners, 3, 5).sources(0..5), 0..3);
        assert_eq!(Map::new(edges, 2, 8).sources(0..1), 0..2);
        assert_eq!(Map::new(edges, 5, 10).sources(9..10), 4..5);
        assert_eq!(Map::new(corners, 7, 1).sources(0..1), 0..2);
    }

    #[test]
    fn large_images_take_wide_products() {
        assert!(!Map::new(UpscaleMode::Nearest, 40_000, 100_000).is_wide());
        assert!(Map::new(UpscaleMode::Nearest, 50_000, 100_000).is_wide());
    }
}
