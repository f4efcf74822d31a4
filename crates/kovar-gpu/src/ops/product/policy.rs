//! The choice of the kernel for a product, from its shape, dtypes, layout and device alone, and the
//! sizes of all tiles.

use kovar_core::DType;
use kovar_core::ops::Precision;

use crate::kernel::Features;
use crate::seam::{Caps, MatrixShape};

/// The most rows of `a` that the vector kernel takes.
pub(in crate::ops) const VECTOR_ROWS: usize = 8;
/// Rows of `b` that a workgroup of the vector kernel takes.
pub(in crate::ops) const VECTOR_COLUMNS: usize = 4;
/// Invocations of a workgroup of the vector kernel.
pub(in crate::ops) const VECTOR_WORKGROUP: u32 = 128;
/// Rows along each side of a small tile in registers; a large one has twice as many.
pub(in crate::ops) const TILE: usize = 64;
/// Vectors of four rows that a slice of a factor has in workgroup memory: 8 KiB.
pub(in crate::ops) const TILE_VECTORS: u32 = 512;
/// Large tiles are chosen if there are at least this many, enough to fill a large GPU.
const LARGE_TILES: usize = 96;

/// The subgroup size that the kernels of cooperative matrices need.
const MATRIX_SUBGROUP: u32 = 32;
/// Rows of a factor above which a tile of matrices is faster.
const MATRIX_ROWS: usize = 16;

/// A tile of cooperative matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) struct MatrixTile {
    /// Whether the factors are of f16.
    pub half: bool,
    /// Rows along each side.
    pub span: usize,
    /// Elements along K of a slice.
    pub depth: u32,
    /// The distance of rows of a slice, in elements.
    pub stride: u32,
    /// The size of a slice: in vectors of four elements of f16, or in elements of f32.
    pub places: u32,
    /// Bytes of workgroup memory, including the tile in registers that f16 falls back to.
    bytes: u32,
}

/// A tile of 8 x 8 matrices of f32.
const SINGLE: MatrixTile = MatrixTile::new(64, 16, 20, None);
/// A tile of 16 x 16 matrices of f16.
const HALF: MatrixTile = MatrixTile::new(128, 32, 40, Some(EXPERTS_TILE_VECTORS));
/// The same for emulated matrices, in less workgroup memory.
const EMULATED_HALF: MatrixTile = MatrixTile::new(128, 16, 16, Some(EXPERTS_TILE_VECTORS));

// The size that `shared/matrix.wgsl` gives a factor's slice.
const _: () = assert!(HALF.places == 1280);
// They stay within the workgroup memory of usual devices.
const _: () = assert!(HALF.bytes <= 48 << 10);
const _: () = assert!(EMULATED_HALF.bytes <= 32 << 10 && SINGLE.bytes <= 16 << 10);

impl MatrixTile {
    const fn new(span: usize, depth: u32, stride: u32, tile_vectors: Option<u32>) -> Self {
        let elements = span as u32 * stride;
        let (half, bytes) = match tile_vectors {
            // Both factors, a matrix of sums for each of eight subgroups, and the fallback's tile.
            Some(vectors) => (
                true,
                2 * 2 * elements + 8 * 16 * 16 * 4 + 2 * 16 * vectors + 12,
            ),
            None => (false, 2 * 4 * elements + 8 * 8 * 8 * 4),
        };
        Self {
            half,
            span,
            depth,
            stride,
            places: if half { elements / 4 } else { elements },
            bytes,
        }
    }
}

/// The tile of cooperative matrices for a product of dtypes `a` and `b`, if the device has such.
pub(in crate::ops) fn matrix_tile(
    caps: &Caps,
    [a, b]: [DType; 2],
    precision: Precision,
) -> Option<MatrixTile> {
    let emulated = !caps.features.contains(Features::MATRICES);
    if !emulated && caps.subgroup_sizes != (MATRIX_SUBGROUP, MATRIX_SUBGROUP) {
        return None;
    }
    // Two factors that must be rounded would lose too much.
    let exact = |dtype| dtype != DType::F32;
    let half = precision == Precision::Default
        && (exact(a) || exact(b))
        && (emulated || caps.features.contains(Features::F16));
    let half_tile = if emulated { EMULATED_HALF } else { HALF };
    [
        (half, MatrixShape::HALF, half_tile),
        (true, MatrixShape::SINGLE, SINGLE),
    ]
    .into_iter()
    .find(|(fits, shape, tile)| {
        *fits && caps.matrices.contains(shape) && tile.bytes <= caps.workgroup_bytes
    })
    .map(|(_, _, tile)| tile)
}

/// The contiguous dim of a factor, a matrix of rows of K elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Major {
    /// K-major: the elements of a row are contiguous.
    K,
    /// The rows are contiguous at each index along K.
    Rows,
    /// Neither is contiguous.
    Neither,
}

/// The properties of a product that the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) struct Shape {
    /// The number of products of matrices.
    pub batches: usize,
    /// Rows of `a` and of the result.
    pub m: usize,
    /// Rows of `b`, columns of the result.
    pub n: usize,
    /// Elements of a factor's row.
    pub k: usize,
    /// The contiguous dims of `a` and `b`.
    pub major: [Major; 2],
    /// Whether both can be read in runs of 16 bytes along those dims.
    pub wide: bool,
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Choice {
    /// A workgroup for each [`VECTOR_COLUMNS`] rows of `b` and all of `a`, read as `rows` rows, a
    /// power of two.
    Vector { rows: u32, wide: bool },
    /// Tiles in registers.
    Tile { large: bool, wide: bool },
    /// Tiles of cooperative matrices.
    Matrix { tile: MatrixTile, wide: bool },
}

/// The kernel for a product, given the device's tile of cooperative matrices for it.
pub(in crate::ops) fn choose(shape: &Shape, matrices: Option<MatrixTile>) -> Choice {
    let Shape { m, n, wide, .. } = *shape;
    if m <= VECTOR_ROWS && shape.major[1] == Major::K {
        return Choice::Vector {
            rows: m.next_power_of_two() as u32,
            wide: wide && shape.major[0] == Major::K && shape.k.is_multiple_of(8),
        };
    }
    if let Some(tile) = matrices
        && m.min(n) > MATRIX_ROWS
    {
        return Choice::Matrix { tile, wide };
    }
    let tiles = shape
        .batches
        .saturating_mul(m.div_ceil(2 * TILE))
        .saturating_mul(n.div_ceil(2 * TILE));
    Choice::Tile {
        large: tiles >= LARGE_TILES && m > TILE && n > TILE,
        wide,
    }
}

/// Vectors of a slice for products with experts, which also keep a list of rows: 4 KiB.
pub(in crate::ops) const EXPERTS_TILE_VECTORS: u32 = 256;
/// The average number of rows for each expert up to which every row reads its expert by itself.
const ROWS_APART: usize = 4;

/// A kernel for products with experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum ExpertsChoice {
    /// Row by row.
    Vector,
    /// Expert by expert, in tiles.
    Tile,
}

/// The kernel for this many rows, one for each token and slot, and this many experts, whose weights
/// are K-major or not.
pub(in crate::ops) fn choose_experts(rows: usize, experts: usize, k_major: bool) -> ExpertsChoice {
    if k_major && rows <= ROWS_APART.saturating_mul(experts.max(2)) {
        ExpertsChoice::Vector
    } else {
        ExpertsChoice::Tile
    }
}

/// Output channels of a group up to which pixels are computed one by one.
const DIRECT_CHANNELS: usize = 8;
/// Invocations of a workgroup that computes pixels one by one.
pub(in crate::ops) const DIRECT_WORKGROUP: u32 = 128;

/// A kernel for a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum ConvolutionChoice {
    /// Pixels one by one, for groups with few output channels.
    Direct,
    /// Tiles of pixels and output channels in registers.
    Tile { large: bool },
    /// Tiles of cooperative matrices.
    Matrix(MatrixTile),
}

/// The kernel for a convolution of this many phases in all groups, of their pixels and of the
/// output channels of a group.
pub(in crate::ops) fn choose_convolution(
    phases: usize,
    pixels: usize,
    channels: usize,
    matrices: Option<MatrixTile>,
) -> ConvolutionChoice {
    if channels <= DIRECT_CHANNELS {
        return ConvolutionChoice::Direct;
    }
    if let Some(tile) = matrices
        && channels.min(pixels) > MATRIX_ROWS
    {
        return ConvolutionChoice::Matrix(tile);
    }
    let tiles = phases
        .saturating_mul(pixels.div_ceil(2 * TILE))
        .saturating_mul(channels.div_ceil(2 * TILE));
    ConvolutionChoice::Tile {
        large: tiles >= LARGE_TILES && pixels > TILE && channels > TILE,
    }
}

/// Whether the factors should change sides, because the vector kernel takes few rows of `a` only.
pub(in crate::ops) fn swaps(m: usize, n: usize, major: [Major; 2]) -> bool {
    let fits = |rows, other| rows <= VECTOR_ROWS && other == Major::K;
    fits(n, major[0]) && !(fits(m, major[1]) && m <= n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        batches: 1,
        m: 512,
        n: 4096,
        k: 4096,
        major: [Major::K; 2],
        wide: true,
    };

    #[test]
    fn few_rows_take_the_vector_kernel() {
        for (m, rows) in [(1, 1), (2, 2), (3, 4), (5, 8), (8, 8)] {
            let choice = choose(&Shape { m, ..SHAPE }, None);
            assert_eq!(choice, Choice::Vector { rows, wide: true });
        }
        assert!(matches!(
            choose(&Shape { m: 9, ..SHAPE }, None),
            Choice::Tile { .. }
        ));
    }

    #[test]
    fn the_vector_kernel_needs_a_k_major_other_factor() {
        let major = [Major::K, Major::Rows];
        let choice = choose(
            &Shape {
                m: 1,
                major,
                ..SHAPE
            },
            None,
        );
        assert!(matches!(choice, Choice::Tile { .. }));
        let major = [Major::Neither, Major::K];
        let choice = choose(
            &Shape {
                m: 1,
                major,
                wide: false,
                ..SHAPE
            },
            None,
        );
        assert_eq!(
            choice,
            Choice::Vector {
                rows: 1,
                wide: false
            }
        );
    }

    #[test]
    fn large_tiles_need_many_of_them() {
        let large = |shape: Shape| matches!(choose(&shape, None), Choice::Tile { large: true, .. });
        assert!(large(SHAPE));
        assert!(large(Shape {
            batches: 100,
            n: 128,
            m: 128,
            ..SHAPE
        }));
        assert!(!large(Shape { n: 512, ..SHAPE }));
        assert!(!large(Shape {
            m: 64,
            n: 1 << 20,
            ..SHAPE
        }));
    }

    fn caps(features: Features, matrices: Vec<MatrixShape>, subgroup: u32) -> Caps {
        use crate::seam::Device as _;
        Caps {
            features,
            matrices,
            subgroup_sizes: (subgroup, subgroup),
            workgroup_bytes: 48 << 10,
            ..crate::seam::null::Null::new().caps().clone()
        }
    }

    #[test]
    fn matrices_of_f16_need_a_factor_that_is_exact_and_no_demand_for_more() {
        let features = Features::ALL;
        let caps = caps(features, vec![MatrixShape::HALF], 32);
        let tile = |dtypes, precision| matrix_tile(&caps, dtypes, precision);
        let (f32, f16) = (DType::F32, DType::F16);
        assert_eq!(tile([f32, f16], Precision::Default), Some(HALF));
        assert_eq!(tile([f32, DType::BF16], Precision::Default), Some(HALF));
        assert_eq!(tile([f32, f16], Precision::F32), None);
        assert_eq!(tile([f32, f32], Precision::Default), None);
    }

    #[test]
    fn matrices_of_f32_serve_every_product() {
        let features = Features::ALL.without(Features::F16);
        let both = vec![MatrixShape::HALF, MatrixShape::SINGLE];
        let caps = caps(features, both, 32);
        for dtype in [DType::F32, DType::F16] {
            for precision in [Precision::Default, Precision::F32] {
                let tile = matrix_tile(&caps, [dtype; 2], precision);
                assert_eq!(tile, Some(SINGLE));
            }
        }
    }

    #[test]
    fn matrices_need_subgroups_of_the_size_that_they_are_written_for() {
        let half = vec![MatrixShape::HALF];
        for (features, subgroup) in [
            (Features::ALL, 64),
            (Features::ALL.without(Features::SUBGROUPS), 0),
        ] {
            let caps = caps(features, half.clone(), subgroup);
            assert_eq!(
                matrix_tile(&caps, [DType::F16; 2], Precision::Default),
                None
            );
        }
    }

    #[test]
    fn matrices_are_for_more_than_a_few_rows() {
        let matrix = |m| {
            matches!(
                choose(&Shape { m, ..SHAPE }, Some(HALF)),
                Choice::Matrix { .. }
            )
        };
        assert!(matrix(17) && !matrix(16) && !matrix(1));
        let choice = choose_convolution(1, 4096, 320, Some(HALF));
        assert_eq!(choice, ConvolutionChoice::Matrix(HALF));
        let choice = choose_convolution(256, 4096, 1, Some(HALF));
        assert_eq!(choice, ConvolutionChoice::Direct);
    }

    #[test]
    fn rows_of_experts_go_together_where_an_expert_has_many() {
        assert_eq!(choose_experts(2, 8, true), ExpertsChoice::Vector);
        assert_eq!(choose_experts(2, 8, false), ExpertsChoice::Tile);
        assert_eq!(choose_experts(256, 8, true), ExpertsChoice::Tile);
    }

    #[test]
    fn a_product_with_a_vector_on_the_right_swaps_its_factors() {
        let k_major = [Major::K; 2];
        assert!(swaps(4096, 1, k_major));
        assert!(!swaps(1, 4096, k_major));
        assert!(!swaps(4096, 1, [Major::Rows, Major::K]));
        assert!(!swaps(100, 100, k_major));
        assert!(!swaps(1, 4096, [Major::K, Major::Rows]));
    }
}
