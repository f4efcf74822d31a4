//! Cuts products until kernels can take them.

use super::{KERNEL_BATCH_RANK, Matrices, Product};
use crate::seam::Caps;

/// The most sums of a dispatch. It keeps the number of workgroups below 2^32 for any tile size.
const MAX_SUMS: usize = (u32::MAX / 2) as usize;

/// Pieces along M, N and K begin at multiples of this, so that runs of 16 bytes stay whole.
const CUT: usize = 16;

/// A dim of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dim {
    Batch(usize),
    M,
    N,
    K,
}

/// Products of at most four batch dims whose operands fit bindings, in the order to compute them.
/// There are none if the result is empty. `None` if single elements are too far apart.
pub(super) fn pieces(caps: &Caps, product: Product) -> Option<Vec<Product>> {
    if product.m == 0 || product.n == 0 || product.batch.contains(&0) {
        return Some(Vec::new());
    }
    let product = merged(product);
    let rank = product.batch.len();
    if rank > KERNEL_BATCH_RANK {
        return cut(caps, &product, Dim::Batch(0), 1);
    }
    let sums = product.batch.iter().product::<usize>();
    let sums = sums.saturating_mul(product.m).saturating_mul(product.n);
    let too_large = product.operands().find(|(matrices, [rows, columns])| {
        let window = matrices.window(&product.batch, product.size(*rows), product.size(*columns));
        window.is_none_or(|window| {
            let limit = caps.max_binding_bytes.min(u32::MAX.into());
            product.size(*columns) > 0 && !window.fits(caps.binding_alignment, limit)
        })
    });
    let dim = match too_large {
        Some((matrices, dims)) => {
            let batch = (0..rank).map(|i| (Dim::Batch(i), matrices.batch[i]));
            let own = [
                (dims[0], matrices.row_stride),
                (dims[1], matrices.column_stride),
            ];
            let reach = |&(dim, stride): &(Dim, usize)| {
                stride.saturating_mul(product.size(dim).saturating_sub(1))
            };
            let longest = batch.chain(own).max_by_key(reach)?;
            (reach(&longest) > 0).then_some(longest.0)?
        }
        None if sums > MAX_SUMS => {
            let dims = (0..rank).map(Dim::Batch).chain([Dim::M, Dim::N]);
            dims.max_by_key(|&dim| product.size(dim))?
        }
        None => return Some(vec![product]),
    };
    let half = product.size(dim).div_ceil(2);
    let step = match dim {
        Dim::Batch(_) => half,
        _ if half > CUT => half.next_multiple_of(CUT),
        _ => half,
    };
    cut(caps, &product, dim, step)
}

fn cut(caps: &Caps, product: &Product, dim: Dim, step: usize) -> Option<Vec<Product>> {
    let mut all = Vec::new();
    for start in (0..product.size(dim)).step_by(step.max(1)) {
        let size = step.min(product.size(dim) - start);
        all.extend(pieces(caps, product.piece(dim, start, size))?);
    }
    Some(all)
}

impl Product {
    fn size(&self, dim: Dim) -> usize {
        match dim {
            Dim::Batch(i) => self.batch[i],
            Dim::M => self.m,
            Dim::N => self.n,
            Dim::K => self.k,
        }
    }

    /// The operands with the dims of their rows and of a row's elements.
    fn operands(&self) -> impl Iterator<Item = (&Matrices, [Dim; 2])> {
        let factors = [(&self.a, [Dim::M, Dim::K]), (&self.b, [Dim::N, Dim::K])];
        let results = self.c.iter().chain([&self.out]);
        factors
            .into_iter()
            .chain(results.map(|matrices| (matrices, [Dim::M, Dim::N])))
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Matrices> {
        let Self { a, b, c, out, .. } = self;
        [a, b, out].into_iter().chain(c)
    }

    /// The piece from `start` on along a dim. Pieces along K add to the sums of the first one.
    fn piece(&self, dim: Dim, start: usize, size: usize) -> Self {
        let mut piece = self.clone();
        match dim {
            Dim::Batch(i) => {
                piece.batch[i] = size;
                for matrices in piece.all() {
                    matrices.offset += start * matrices.batch[i];
                }
            }
            Dim::M => {
                piece.m = size;
                let Self { a, c, out, .. } = &mut piece;
                for matrices in [a, out].into_iter().chain(c) {
                    matrices.offset += start * matrices.row_stride;
                }
            }
            Dim::N => {
                piece.n = size;
                piece.b.offset += start * piece.b.row_stride;
                let Self { c, out, .. } = &mut piece;
                for matrices in [out].into_iter().chain(c) {
                    matrices.offset += start * matrices.column_stride;
                }
            }
            Dim::K => {
                piece.k = size;
                for matrices in [&mut piece.a, &mut piece.b] {
                    matrices.offset += start * matrices.column_stride;
                }
                if start > 0 {
                    piece.c = Some(piece.out.clone());
                    piece.beta = 1.0;
                }
            }
        }
        piece
    }
}

/// The product without batch dims of size 1. Neighbouring batch dims are merged if they are
/// contiguous to each other in all operands, and the innermost ones likewise into `m`.
fn merged(mut product: Product) -> Product {
    for i in (0..product.batch.len()).rev() {
        if product.batch[i] == 1 {
            remove(&mut product, i);
        }
    }
    for i in (1..product.batch.len()).rev() {
        let size = product.batch[i];
        let alike = |matrices: &Matrices| {
            matrices.batch[i].checked_mul(size) == Some(matrices.batch[i - 1])
        };
        if product.operands().all(|(matrices, _)| alike(matrices)) {
            product.batch[i - 1] *= size;
            for matrices in product.all() {
                matrices.batch[i - 1] = matrices.batch[i];
            }
            remove(&mut product, i);
        }
    }
    if product.k == 1 {
        (product.a.column_stride, product.b.column_stride) = (1, 1);
    }
    while let Some(&size) = product.batch.last() {
        let (last, m) = (product.batch.len() - 1, product.m);
        let on = |matrices: &Matrices| {
            m == 1 || matrices.row_stride.checked_mul(m) == Some(matrices.batch[last])
        };
        let rows = product.c.iter().chain([&product.a, &product.out]);
        let all = { rows }.all(on);
        if product.b.batch[last] != 0 || !all {
            break;
        }
        let Product { a, c, out, .. } = &mut product;
        for matrices in [a, out].into_iter().chain(c) {
            if m == 1 {
                matrices.row_stride = matrices.batch[last];
            }
        }
        product.m *= size;
        remove(&mut product, last);
    }
    product
}

fn remove(product: &mut Product, dim: usize) {
    product.batch.remove(dim);
    for matrices in product.all() {
        matrices.batch.remove(dim);
    }
}
