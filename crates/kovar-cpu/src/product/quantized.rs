//! Products of prepared quantised weights with 8-bit activations.

use super::activation::{BLOCK_BYTES, QuantizeCall};
use super::kernels::{FusedCall, FusedFn, Kernels};
use super::panel::{DecodeCall, MAX_BLOCK_BYTES, PanelCall, PanelKind};
use super::{ProductError, Rows, RowsMut};
use crate::buffer::ALIGN;
use crate::pack::{BLOCK_LEN, GROUP_ROWS, N_FORMATS, PackedMatrix, format_index, per_format};
use crate::pool::{ChunkPtr, ThreadPool};

/// Groups that a panel holds.
const PANEL_GROUPS: usize = 2;

/// Bytes of activations of one chunk of a product: half of a common L2 cache.
const TOKEN_BLOCK_BYTES: usize = 1 << 20;

/// The least weight bytes of a chunk when few tokens are multiplied.
const FUSED_GRAIN_BYTES: usize = 16 << 10;

/// Chunks per thread of a product, so that a thread that other processes slow down takes fewer.
const CHUNKS_PER_THREAD: usize = 8;

const KINDS: [PanelKind; N_FORMATS] = per_format!(PanelKind::of, ());

/// Activations as 8-bit codes, ready for any number of products.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedRows<'a> {
    data: &'a [u8],
    rows: usize,
    k: usize,
    kernels: &'static Kernels,
}

impl<'a> QuantizedRows<'a> {
    /// Bytes of scratch memory that `[rows, k]` activations take.
    pub fn bytes(rows: usize, k: usize) -> usize {
        rows.saturating_mul((k / BLOCK_LEN).saturating_mul(BLOCK_BYTES))
    }

    /// Quantises the rows of `x` as `kovar_core::quant::activation` defines, into `scratch`.
    ///
    /// - `x`: `[m, k]`, `k` a multiple of 32.
    /// - `scratch`: at least [`bytes(m, k)`](Self::bytes) bytes.
    ///
    /// # Errors
    /// [`ProductError::PartialBlock`] and [`ProductError::Scratch`].
    pub fn quantize(
        kernels: &'static Kernels,
        pool: &ThreadPool,
        x: Rows<'_>,
        scratch: &'a mut [u8],
    ) -> Result<Self, ProductError> {
        let (rows, k) = (x.rows(), x.cols());
        if !k.is_multiple_of(BLOCK_LEN) {
            return Err(ProductError::PartialBlock { k });
        }
        let needed = Self::bytes(rows, k);
        let given = scratch.len();
        let Some(data) = scratch.get_mut(..needed) else {
            return Err(ProductError::Scratch { needed, given });
        };
        let row_bytes = k / BLOCK_LEN * BLOCK_BYTES;
        let out = ChunkPtr::new(data.as_mut_ptr());
        pool.run(rows.div_ceil(kernels.tile), &|tile, _| {
            let first = tile * kernels.tile;
            // SAFETY: the tile's rows are inside `x` and its bytes inside `data`, apart from those
            // of other tiles; the kernels' level runs on this machine.
            unsafe {
                (kernels.quantize)(&QuantizeCall {
                    x: x.as_ptr().add(first * x.stride()),
                    stride: x.stride(),
                    tokens: kernels.tile.min(rows - first),
                    blocks: k / BLOCK_LEN,
                    out: out.get().add(first * row_bytes),
                });
            }
        });
        Ok(Self {
            data,
            rows,
            k,
            kernels,
        })
    }

    /// The tile that starts at token `first` (a multiple of the level's tile) and its tokens.
    fn tile(&self, first: usize) -> (*const u8, usize) {
        let row_bytes = self.k / BLOCK_LEN * BLOCK_BYTES;
        let tokens = self.kernels.tile.min(self.rows - first);
        (self.data[first * row_bytes..].as_ptr(), tokens)
    }
}

/// One product `y[m, n] = x[m, k] * w[n, k]^T` of several that share `x`.
#[derive(Debug)]
pub struct QuantizedProduct<'a> {
    /// `[n, k]`.
    pub w: PackedMatrix<'a>,
    /// `[m, n]`.
    pub y: RowsMut<'a>,
}

impl QuantizedProduct<'_> {
    /// Bytes of scratch memory, aligned to 64 bytes, that [`run`](Self::run) takes.
    pub fn scratch_bytes(n_threads: usize, k: usize) -> usize {
        n_threads.saturating_mul(panel_bytes(k))
    }

    /// Computes all `products` in one job of the pool.
    ///
    /// The sums of a block are exact integers; they are scaled and added in f32. The result does
    /// not depend on the number of threads.
    ///
    /// - `x`: `[m, k]`.
    /// - `scratch`: at least [`scratch_bytes`](Self::scratch_bytes) for the pool's threads.
    ///
    /// # Errors
    /// [`ProductError::Mismatch`] if shapes disagree, [`ProductError::Scratch`].
    pub fn run(
        pool: &ThreadPool,
        x: &QuantizedRows<'_>,
        products: &[Self],
        scratch: &mut [u8],
    ) -> Result<(), ProductError> {
        for product in products {
            ProductError::check("elements of a weight's row", x.k, product.w.layout().k())?;
            ProductError::check("columns of y", product.w.layout().rows(), product.y.cols())?;
            ProductError::check("rows of y", x.rows, product.y.rows())?;
        }
        match &x.kernels.fused {
            Some(fused) if x.rows <= x.kernels.fused_tokens => run_fused(pool, x, products, fused),
            _ => run_panels(pool, x, products, scratch)?,
        }
        Ok(())
    }
}

fn panel_bytes(k: usize) -> usize {
    (k / BLOCK_LEN).saturating_mul(PANEL_GROUPS * MAX_BLOCK_BYTES)
}

/// The product that item `index` belongs to and the item's index in it, where each product has
/// `count` items and the items of all products are numbered in a row.
fn locate<'p, 'a>(
    products: &'p [QuantizedProduct<'a>],
    mut index: usize,
    count: impl Fn(&QuantizedProduct<'_>) -> usize,
) -> Option<(&'p QuantizedProduct<'a>, usize)> {
    for product in products {
        let n = count(product);
        if index < n {
            return Some((product, index));
        }
        index -= n;
    }
    None
}

fn run_fused(
    pool: &ThreadPool,
    x: &QuantizedRows<'_>,
    products: &[QuantizedProduct<'_>],
    fused: &[FusedFn; N_FORMATS],
) {
    let groups = |product: &QuantizedProduct<'_>| product.w.layout().groups();
    let n_groups: usize = products.iter().map(groups).sum();
    let bytes: usize = products.iter().map(|p| p.w.layout().bytes()).sum();
    let most = (pool.n_threads() * CHUNKS_PER_THREAD).min(n_groups);
    let n_chunks = (bytes / FUSED_GRAIN_BYTES).clamp(1, most.max(1));
    if n_groups == 0 || x.rows == 0 {
        return;
    }
    let (tile, tokens) = x.tile(0);
    let tile = tile.addr();
    pool.run(n_chunks, &|chunk, _| {
        let bound = |i: usize| (i as u128 * n_groups as u128 / n_chunks as u128) as usize;
        for index in bound(chunk)..bound(chunk + 1) {
            let Some((product, group)) = locate(products, index, groups) else {
                return;
            };
            let layout = product.w.layout();
            let Some(kernel) = format_index(layout.dtype()).and_then(|f| fused.get(f)) else {
                return;
            };
            let (scales, codes) = product.w.group(group);
            let first = group * GROUP_ROWS;
            // SAFETY: the group is whole and aligned, `k` was checked to be that of the tile, `y`
            // has `layout.rows()` columns, and each group is taken by one chunk.
            unsafe {
                kernel(&FusedCall {
                    scales: scales.as_ptr(),
                    codes: codes.as_ptr(),
                    blocks: layout.blocks(),
                    x: x.data.as_ptr().with_addr(tile),
                    tokens,
                    y: product.y.as_mut_ptr().add(first),
                    y_stride: product.y.stride(),
                    rows: GROUP_ROWS.min(layout.rows() - first),
                });
            }
        }
    });
}

fn run_panels(
    pool: &ThreadPool,
    x: &QuantizedRows<'_>,
    products: &[QuantizedProduct<'_>],
    scratch: &mut [u8],
) -> Result<(), ProductError> {
    let panel_bytes = panel_bytes(x.k);
    let needed = panel_bytes * pool.n_threads();
    let given = scratch.len();
    if given < needed || (needed > 0 && !scratch.as_ptr().addr().is_multiple_of(ALIGN)) {
        return Err(ProductError::Scratch { needed, given });
    }
    let scratch = ChunkPtr::new(scratch.as_mut_ptr());
    let panels =
        |product: &QuantizedProduct<'_>| product.w.layout().groups().div_ceil(PANEL_GROUPS);
    let n_panels: usize = products.iter().map(panels).sum();
    if n_panels == 0 || x.rows == 0 {
        return Ok(());
    }
    let block = token_block(x, n_panels, pool.n_threads());
    let n_blocks = x.rows.div_ceil(block);
    pool.run(n_panels * n_blocks, &|chunk, worker| {
        let Some((product, panel)) = locate(products, chunk % n_panels, panels) else {
            return;
        };
        let first = chunk / n_panels * block;
        let tokens = first..x.rows.min(first + block);
        // SAFETY: `scratch` has `panel_bytes` for each worker, aligned because `MAX_BLOCK_BYTES` is
        // a multiple of 64. Two chunks differ in their panel or in their tokens.
        unsafe {
            let scratch = scratch.get().add(worker * panel_bytes);
            multiply_panel(x, product, panel, tokens, scratch);
        }
    });
    Ok(())
}

const _: () = assert!(MAX_BLOCK_BYTES.is_multiple_of(ALIGN));

/// Tokens of a chunk, a multiple of the level's tile: few enough to stay in a cache and to give
/// chunks to all threads.
fn token_block(x: &QuantizedRows<'_>, n_panels: usize, n_threads: usize) -> usize {
    const LEAST_TILES: usize = 8;
    let tile_bytes = QuantizedRows::bytes(x.kernels.tile, x.k).max(1);
    let n_tiles = x.rows.div_ceil(x.kernels.tile);
    let mut tiles = (TOKEN_BLOCK_BYTES / tile_bytes).clamp(1, n_tiles);
    while tiles > LEAST_TILES && n_panels * n_tiles.div_ceil(tiles) < 4 * n_threads {
        tiles = tiles.div_ceil(2);
    }
    tiles * x.kernels.tile
}

/// Decodes a panel of `product.w` and multiplies it with a range of tokens.
///
/// # Safety
/// `scratch` is writable for `panel_bytes` bytes and aligned to 64. No other thread uses it, or
/// writes these rows and tokens of `product.y`.
unsafe fn multiply_panel(
    x: &QuantizedRows<'_>,
    product: &QuantizedProduct<'_>,
    panel: usize,
    tokens: std::ops::Range<usize>,
    scratch: *mut u8,
) {
    let layout = product.w.layout();
    let Some((format, kind)) = format_index(layout.dtype()).and_then(|f| Some((f, *KINDS.get(f)?)))
    else {
        return;
    };
    let first_group = panel * PANEL_GROUPS;
    let groups = PANEL_GROUPS.min(layout.groups() - first_group);
    for g in 0..groups {
        let (scales, codes) = product.w.group(first_group + g);
        // SAFETY: the group is whole and aligned, and the panel has room for it.
        unsafe {
            (x.kernels.decode[format])(&DecodeCall {
                scales: scales.as_ptr(),
                codes: codes.as_ptr(),
                blocks: layout.blocks(),
                out: scratch.add(g * kind.block_bytes()),
                step: groups * kind.block_bytes(),
            });
        }
    }
    let first_row = first_group * GROUP_ROWS;
    for first in tokens.step_by(x.kernels.tile) {
        let (tile, n_tokens) = x.tile(first);
        // SAFETY: the panel and the tile have `blocks` blocks; `y` has the rows and tokens.
        unsafe {
            (x.kernels.panel[kind as usize])(&PanelCall {
                panel: scratch,
                groups,
                blocks: layout.blocks(),
                x: tile,
                tokens: n_tokens,
                y: product
                    .y
                    .as_mut_ptr()
                    .add(first * product.y.stride() + first_row),
                y_stride: product.y.stride(),
                rows: (groups * GROUP_ROWS).min(layout.rows() - first_row),
            });
        }
    }
}
