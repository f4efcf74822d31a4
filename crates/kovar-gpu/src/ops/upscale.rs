//! Images of another size.

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UpscaleMode};

use super::{Entry, Planned, images, no_kernel};
use crate::kernel::Kernel;
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("upscale", 1);

pub(super) static ENTRY: Entry = Entry::floats(|caps, node| images::refused(caps, node, 2), plan);

/// The position of pixel `i` along an axis: `max(i factor + plus - minus, 0) / divisor`.
#[derive(Clone, Copy)]
struct Map {
    factor: usize,
    plus: usize,
    minus: usize,
    divisor: usize,
    /// The last pixel of the source, and the number of the result's pixels.
    last: usize,
    n: usize,
}

impl Map {
    fn new(mode: UpscaleMode, size: usize, n: usize) -> Self {
        let last = size.saturating_sub(1);
        let (factor, plus, minus, divisor) = match mode {
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
            divisor,
            last,
            n,
        }
    }

    /// The pixels of the source that some of the result need.
    fn sources(self, range: Range<usize>) -> Range<usize> {
        let place =
            |i: usize| (i * self.factor + self.plus).saturating_sub(self.minus) / self.divisor;
        let end = place(range.end - 1) + 2;
        place(range.start).min(self.last)..end.min(self.last + 1)
    }

    /// Whether the kernel needs products of more than 32 bits.
    fn is_wide(self) -> bool {
        self.n * self.factor + self.plus > u32::MAX as usize
    }

    fn params(self) -> [u32; 4] {
        // Sizes are of 29 bits at most.
        [self.factor, self.plus, self.minus, self.divisor].map(|n| n as u32)
    }
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Upscale(op) = node.op() else {
        return Err(refused());
    };
    let x = node.input(0).ok_or_else(refused)?;
    let map = |axis: usize| Map::new(op.mode, x.dims().from_end(1 - axis), op.size[axis]);
    let [rows, columns] = [0, 1].map(map);
    let constants = [
        ("LINEAR", u32::from(op.mode != UpscaleMode::Nearest)),
        ("WIDE", u32::from(rows.is_wide() || columns.is_wide())),
    ];
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
                .vec4([tile.y_row, tile.x_row, rows.last, columns.last].map(|n| n as u32))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_tile_are_those_that_its_pixels_lie_between() {
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
