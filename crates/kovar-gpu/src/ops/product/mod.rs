//! Products of matrices: what `matmul` and `gemm` have in common.

mod cut;
pub(super) mod policy;

use kovar_core::ops::Precision;
use kovar_core::{DType, Dims, Layout};

use self::cut::pieces;
use self::policy::{Along, Choice, MatrixTile, Shape};
use super::code;
use crate::kernel::{Access, Dispatch, Features, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, View};

static TILED: Kernel = Kernel {
    file: "product",
    entry: "product",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Read],
};

static VECTOR: Kernel = Kernel {
    file: "product_vector",
    entry: "product_vector",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Read],
};

static MATRIX: Kernel = Kernel {
    file: "product_matrix",
    entry: "product_matrix",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Read],
};

/// Batch dims that kernels take.
const KERNEL_BATCH_RANK: usize = 4;

/// An operand as a batch of matrices. Strides and the offset count elements of its storage.
#[derive(Clone, Debug)]
pub(super) struct Matrices {
    pub operand: Operand,
    pub offset: usize,
    /// One for each batch dim.
    pub batch: Vec<usize>,
    /// From a line to the next: a row, or a column of what is transposed.
    pub line: usize,
    /// From an element of a line to the next.
    pub step: usize,
}

impl Matrices {
    /// An operand with the batch strides given, whose lines run along the last dim, or along the
    /// last but one.
    pub fn new(operand: Operand, batch: Vec<usize>, transposed: bool) -> Self {
        let layout = &operand.layout;
        let strides = [layout.stride_from_end(1), layout.stride_from_end(0)];
        let [line, step] = match transposed {
            false => strides,
            true => [strides[1], strides[0]],
        };
        Self {
            offset: layout.offset(),
            batch,
            line,
            step,
            operand,
        }
    }

    /// The window of a piece with at most [`KERNEL_BATCH_RANK`] batch dims.
    fn window(&self, batch: &[usize], lines: usize, steps: usize) -> Option<Operand> {
        let dims = Dims::new(&[batch, &[lines, steps]].concat())?;
        let strides = Dims::new(&[self.batch.as_slice(), &[self.line, self.step]].concat())?;
        let layout = Layout::strided(dims, strides, self.offset)?;
        Some(self.operand.with_layout(layout))
    }

    /// How a matrix of `lines` lines of `steps` elements lies. A size of 1 has no neighbours.
    fn along(&self, lines: usize, steps: usize) -> Along {
        if self.step == 1 || steps == 1 {
            Along::Terms
        } else if self.line == 1 || lines == 1 {
            Along::Lines
        } else {
            Along::Neither
        }
    }

    /// Whether all runs along the neighbours are of whole runs of 16 bytes, and begin at such.
    pub fn wide(&self, batch: &[usize], lines: usize, steps: usize) -> bool {
        let run = 16 / self.operand.dtype.block_bytes().max(1);
        let whole = |n: usize| n.is_multiple_of(run);
        let (size, other, other_size) = match (self.step, self.line) {
            (1, line) => (steps, line, lines),
            (step, 1) => (lines, step, steps),
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
    /// Lines along `m`.
    pub a: Matrices,
    /// Lines along `n`.
    pub b: Matrices,
    /// Lines along `m`. `None` if nothing is added.
    pub c: Option<Matrices>,
    /// Lines along `m`. F32.
    pub out: Matrices,
    pub alpha: f32,
    pub beta: f32,
    pub precision: Precision,
}

/// Dispatches of a product; `None` if an operand cannot be cut to what the device can bind.
pub(super) fn plan(caps: &Caps, product: Product) -> Option<Vec<Dispatch>> {
    let mut dispatches = Vec::new();
    for piece in pieces(caps, product)? {
        dispatches.push(dispatch(caps, turned(piece))?);
    }
    Some(dispatches)
}

/// The product with its factors on the sides that the kernels like.
fn turned(mut product: Product) -> Product {
    let Product { m, n, k, .. } = product;
    let along = [product.a.along(m, k), product.b.along(n, k)];
    if policy::swaps(m, n, along) {
        std::mem::swap(&mut product.a, &mut product.b);
        (product.m, product.n) = (n, m);
        for result in product.c.iter_mut().chain([&mut product.out]) {
            std::mem::swap(&mut result.line, &mut result.step);
        }
    }
    product
}

/// The variant of a kernel.
pub(super) fn variant(wide: bool, result: DType) -> Features {
    let chosen = [
        (wide, Features::WIDE),
        (result != DType::F32, Features::NARROW),
    ];
    let chosen = chosen.into_iter().filter(|(chosen, _)| *chosen);
    chosen.fold(Features::SUBGROUPS, |all, (_, feature)| all.with(feature))
}

/// The constants of a tile of matrices, and its variant of a kernel.
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
    match tile.half {
        true => Features::MATRICES.with(Features::HALF),
        false => Features::MATRICES,
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
        along: [a.along(m, k), b.along(n, k)],
        wide: a.wide(&batch, m, k) && b.wide(&batch, n, k),
    };
    let window = out.window(&batch, m, n)?;
    // An empty sum reads neither factor, and there may be nothing to bind.
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
        Some(c) => (view(c, &c_window)?, [c.line, c.step]),
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
        .vec4(sizes([a.line, a.step, b.line, b.step]))
        .vec4(sizes([c_steps[0], c_steps[1], out.line, out.step]))
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
    let mut features = variant(false, window.dtype);
    let (kernel, workgroups, wide) = match policy::choose(&shape, matrices) {
        Choice::Matrix { tile, wide } => {
            features = features.with(matrix_variant(&tile, &mut constants));
            let tiles = m.div_ceil(tile.span).checked_mul(n.div_ceil(tile.span))?;
            (&MATRIX, tiles, wide)
        }
        Choice::Vector { lines, wide } => {
            constants.push(("LINES", lines));
            constants.push(("VECTOR_WORKGROUP", policy::VECTOR_WORKGROUP));
            constants.push(("PARTIALS", lines * policy::VECTOR_WORKGROUP));
            (&VECTOR, n.div_ceil(policy::VECTOR_COLUMNS), wide)
        }
        Choice::Tile { large, wide } => {
            let groups = if large { 2 } else { 1 };
            constants.push(("TILE_GROUPS", groups));
            constants.push(("TILE_VECTORS", policy::TILE_VECTORS));
            let span = policy::TILE * groups as usize;
            (
                &TILED,
                m.div_ceil(span).checked_mul(n.div_ceil(span))?,
                wide,
            )
        }
    };
    Some(Dispatch {
        kernel,
        features: match wide {
            true => features.with(Features::WIDE),
            false => features,
        },
        constants,
        params: params.finish(),
        operands: vec![window, a_window, b_window, c_window],
        workgroups: u32::try_from(workgroups.checked_mul(shape.batches)?).ok()?,
    })
}
