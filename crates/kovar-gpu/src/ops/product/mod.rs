//! Products of matrices, for `matmul`, `gemm` and convolutions of one tap.

mod cut;
pub(super) mod policy;

use kovar_core::ops::Precision;
use kovar_core::{DType, Dims, Layout};

use self::cut::pieces;
use self::policy::{Choice, Major, MatrixTile, Shape};
use super::code;
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, View};

static TILED: Kernel = Kernel::new("product", 3);

static VECTOR: Kernel = Kernel::new("product_vector", 3);

static MATRIX: Kernel = Kernel::new("product_matrix", 3);

/// Batch dims that kernels take.
const KERNEL_BATCH_RANK: usize = 4;

/// An operand as a batch of matrices. Strides and the offset count elements of its storage.
#[derive(Clone, Debug)]
pub(super) struct Matrices {
    pub operand: Operand,
    pub offset: usize,
    /// The stride of each batch dim.
    pub batch: Vec<usize>,
    /// The stride of rows, of `k` elements in a factor. They are columns of a transposed operand.
    pub row_stride: usize,
    /// The stride of columns, in a factor the stride along K.
    pub column_stride: usize,
}

impl Matrices {
    /// An operand with these batch strides, whose rows run along the last dim, or along the last
    /// but one if it is transposed.
    pub fn new(operand: Operand, batch: Vec<usize>, transposed: bool) -> Self {
        let layout = &operand.layout;
        let strides = [layout.stride_from_end(1), layout.stride_from_end(0)];
        let [row_stride, column_stride] = if transposed {
            [strides[1], strides[0]]
        } else {
            strides
        };
        Self {
            offset: layout.offset(),
            batch,
            row_stride,
            column_stride,
            operand,
        }
    }

    /// The window of a piece with at most [`KERNEL_BATCH_RANK`] batch dims.
    fn window(&self, batch: &[usize], rows: usize, k: usize) -> Option<Operand> {
        let dims = Dims::new(&[batch, &[rows, k]].concat())?;
        let own = [self.row_stride, self.column_stride];
        let strides = Dims::new(&[self.batch.as_slice(), &own].concat())?;
        let layout = Layout::strided(dims, strides, self.offset)?;
        Some(self.operand.with_layout(layout))
    }

    /// The contiguous dim of a matrix of `rows` rows of `k` elements. A dim of size 1 is
    /// contiguous.
    fn major(&self, rows: usize, k: usize) -> Major {
        if self.column_stride == 1 || k == 1 {
            Major::K
        } else if self.row_stride == 1 || rows == 1 {
            Major::Rows
        } else {
            Major::Neither
        }
    }

    /// Whether the contiguous dim can be read in runs of 16 bytes, all of them whole and aligned.
    pub fn wide(&self, batch: &[usize], rows: usize, k: usize) -> bool {
        let run = 16 / self.operand.dtype.block_bytes().max(1);
        let whole = |n: usize| n.is_multiple_of(run);
        let (size, other, other_size) = match (self.column_stride, self.row_stride) {
            (1, row_stride) => (k, row_stride, rows),
            (column_stride, 1) => (rows, column_stride, k),
            _ => return false,
        };
        let batches = batch.iter().zip(&self.batch);
        whole(self.offset)
            && whole(size)
            && (other_size == 1 || whole(other))
            && batches
                .filter(|(size, _)| **size > 1)
                .all(|(_, &stride)| whole(stride))
    }
}

/// `out[b, i, j] = alpha sum_k a[b, i, k] b[b, j, k] + beta c[b, i, j]`
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The sizes of the batch dims, outermost first.
    pub batch: Vec<usize>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// `m` rows of `k` elements.
    pub a: Matrices,
    /// `n` rows of `k` elements.
    pub b: Matrices,
    /// `m` rows of `n` elements. `None` if nothing is added.
    pub c: Option<Matrices>,
    /// `m` rows of `n` elements.
    pub out: Matrices,
    pub alpha: f32,
    pub beta: f32,
    pub precision: Precision,
}

/// Dispatches of a product; `None` if an operand cannot be cut to what the device can bind.
pub(super) fn plan(caps: &Caps, product: Product) -> Option<Vec<Dispatch>> {
    let mut dispatches = Vec::new();
    for piece in pieces(caps, product)? {
        dispatches.push(dispatch(caps, oriented(piece))?);
    }
    Some(dispatches)
}

/// The product with its factors on the sides that the kernels prefer.
fn oriented(mut product: Product) -> Product {
    let Product { m, n, k, .. } = product;
    let major = [product.a.major(m, k), product.b.major(n, k)];
    if policy::swaps(m, n, major) {
        std::mem::swap(&mut product.a, &mut product.b);
        (product.m, product.n) = (n, m);
        for result in product.c.iter_mut().chain([&mut product.out]) {
            std::mem::swap(&mut result.row_stride, &mut result.column_stride);
        }
    }
    product
}

/// The variant of a kernel that reads in wide runs or not, for a dtype of the result.
pub(super) fn variant(wide: bool, result: DType) -> Features {
    let chosen = [
        (wide, Features::WIDE),
        (result != DType::F32, Features::NARROW),
    ];
    let chosen = chosen.into_iter().filter(|(chosen, _)| *chosen);
    chosen.fold(Features::SUBGROUPS, |all, (_, feature)| all.with(feature))
}

/// Appends the constants of a tile in registers, small or large, and gives its rows along each
/// side.
pub(super) fn tile_constants(large: bool, constants: &mut Vec<(&'static str, u32)>) -> usize {
    let groups = if large { 2 } else { 1 };
    constants.push(("TILE_GROUPS", groups));
    constants.push(("TILE_VECTORS", policy::TILE_VECTORS));
    policy::TILE * groups as usize
}

/// Appends the constants of the vector kernel for this many rows of `a`.
pub(super) fn vector_constants(rows: u32, constants: &mut Vec<(&'static str, u32)>) {
    constants.push(("ROWS", rows));
    constants.push(("VECTOR_WORKGROUP", policy::VECTOR_WORKGROUP));
    constants.push(("PARTIALS", rows * policy::VECTOR_WORKGROUP));
}

/// Appends the constants of a tile of matrices, and gives its variant of a kernel.
pub(super) fn matrix_variant(
    tile: &MatrixTile,
    constants: &mut Vec<(&'static str, u32)>,
) -> Features {
    constants.extend([
        ("MATRIX_DEPTH", tile.depth),
        ("MATRIX_STRIDE", tile.stride),
        ("MATRIX_PLACES", tile.places),
        ("TILE_GROUPS", 1),
        ("TILE_VECTORS", policy::EXPERTS_TILE_VECTORS),
    ]);
    if tile.half {
        Features::MATRICES.with(Features::HALF)
    } else {
        Features::MATRICES
    }
}

fn dispatch(caps: &Caps, product: Product) -> Option<Dispatch> {
    let Product {
        batch,
        m,
        n,
        k,
        a,
        b,
        c,
        out,
        alpha,
        beta,
        precision,
    } = product;
    let shape = Shape {
        batches: batch.iter().product(),
        m,
        n,
        k,
        major: [a.major(m, k), b.major(n, k)],
        wide: a.wide(&batch, m, k) && b.wide(&batch, n, k),
    };
    let window = out.window(&batch, m, n)?;
    // An empty sum reads neither factor. The result is bound in their place.
    let [a_window, b_window] = match k {
        0 => [window.clone(), window.clone()],
        _ => [a.window(&batch, m, k)?, b.window(&batch, n, k)?],
    };
    let c_window = match &c {
        Some(c) => c.window(&batch, m, n)?,
        None => window.clone(),
    };
    let view = |matrices: &Matrices, window: &Operand| {
        let strides = Dims::new(&matrices.batch)?;
        Some(window.view(&strides, caps.binding_alignment))
    };
    let (c_view, c_steps) = match &c {
        Some(c) => (view(c, &c_window)?, [c.row_stride, c.column_stride]),
        None => (View::default(), [0; 2]),
    };
    let sizes = |sizes: [usize; 4]| sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    let mut batches = [1; KERNEL_BATCH_RANK];
    batches[KERNEL_BATCH_RANK - batch.len()..].copy_from_slice(&batch);
    let params = Params::new()
        .vec4(sizes(batches))
        .view(view(&a, &a_window)?)
        .view(view(&b, &b_window)?)
        .view(c_view)
        .view(view(&out, &window)?)
        .vec4(sizes([m, n, k, 0]))
        .vec4(sizes([
            a.row_stride,
            a.column_stride,
            b.row_stride,
            b.column_stride,
        ]))
        .vec4(sizes([
            c_steps[0],
            c_steps[1],
            out.row_stride,
            out.column_stride,
        ]))
        .floats([alpha, beta, 0.0, 0.0]);
    let c_dtype = c.as_ref().map_or(DType::F32, |c| c.operand.dtype);
    let mut constants = vec![
        ("A_DTYPE", code(a_window.dtype)),
        ("B_DTYPE", code(b_window.dtype)),
        ("C_DTYPE", code(c_dtype)),
        ("OUT_DTYPE", code(window.dtype)),
        ("ADDEND", u32::from(c.is_some())),
    ];
    let dtypes = [a.operand.dtype, b.operand.dtype];
    let matrices = policy::matrix_tile(caps, dtypes, precision);
    let mut features = Features::NONE;
    let (kernel, workgroups, wide) = match policy::choose(&shape, matrices) {
        Choice::Matrix { tile, wide } => {
            features = features.with(matrix_variant(&tile, &mut constants));
            let tiles = m.div_ceil(tile.span).checked_mul(n.div_ceil(tile.span))?;
            (&MATRIX, tiles, wide)
        }
        Choice::Vector { rows, wide } => {
            vector_constants(rows, &mut constants);
            (&VECTOR, n.div_ceil(policy::VECTOR_COLUMNS), wide)
        }
        Choice::Tile { large, wide } => {
            let span = tile_constants(large, &mut constants);
            let tiles = m.div_ceil(span).checked_mul(n.div_ceil(span))?;
            (&TILED, tiles, wide)
        }
    };
    Some(Dispatch {
        kernel,
        features: features.with(variant(wide, window.dtype)),
        constants,
        params: params.finish(),
        operands: vec![window, a_window, b_window, c_window],
        workgroups: u32::try_from(workgroups.checked_mul(shape.batches)?).ok()?,
    })
}
