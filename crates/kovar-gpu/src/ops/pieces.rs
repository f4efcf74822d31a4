//! Operands cut into pieces that kernels can take.

use std::ops::Range;

use kovar_core::{Collapsed, Dims, Layout, collapse};

use crate::seam::Caps;
use crate::view::{Operand, View};

/// The most elements that a dispatch counts.
pub(super) const MAX_ELEMENTS: usize = (u32::MAX / 2) as usize;

/// Operands that kernels can take: they have few collapsed outer dims, and each fits a binding.
pub(super) struct Piece {
    pub operands: Vec<Operand>,
    /// The outer dims, which all operands share.
    pub collapsed: Collapsed,
}

impl Piece {
    /// The operands' views, of the collapsed outer dims.
    pub fn views(&self, caps: &Caps) -> Vec<View> {
        let operands = self.operands.iter().zip(&self.collapsed.strides);
        operands
            .map(|(operand, strides)| operand.view(strides, caps.binding_alignment))
            .collect()
    }
}

/// Whether an operand can be bound at once.
pub(super) fn fits(caps: &Caps, operand: &Operand) -> bool {
    operand.fits(caps.binding_alignment, caps.max_binding_bytes)
}

/// Whether an operand of this size could be bound at once at any address.
pub(super) fn fits_anywhere(caps: &Caps, operand: &Operand) -> bool {
    let bytes = operand.bytes();
    // At worst, the first byte is the last before a multiple of the alignment, and the last byte is
    // the first of a word.
    let longest = (bytes.end - bytes.start).saturating_add(caps.binding_alignment + 2);
    longest <= caps.max_binding_bytes
}

/// A range of an operand along a dim; `None` if it has no such range.
pub(super) fn slice(operand: &Operand, dim: usize, range: Range<usize>) -> Option<Operand> {
    Some(operand.with_layout(operand.layout.slice(dim, range)?))
}

/// The elements that an invocation writes at once to rows of `n` elements: `per`, which fill a
/// word, if rows consist of whole words, else 1.
pub(super) fn per_word(out: &View, n: u32, per: u32) -> u32 {
    let [outer @ .., last] = out.strides;
    let mut starts = outer.iter().chain([&out.offset, &n]);
    let whole = last == 1 && starts.all(|start| start.is_multiple_of(per));
    if whole { per } else { 1 }
}

/// Cuts operands whose first `rank` dims are equal along those, outermost first, until each operand
/// fits and the dims collapse to `most` at most; `None` if the dims differ or a single index of the
/// outer dims is too large.
pub(super) fn pieces(
    caps: &Caps,
    operands: &[Operand],
    rank: usize,
    most: usize,
) -> Option<Vec<Piece>> {
    let outer: Option<Vec<Layout>> = operands.iter().map(|o| first_dims(o, rank)).collect();
    let outer = outer?;
    let layouts: Vec<&Layout> = outer.iter().collect();
    let collapsed = collapse(&layouts)?;
    if operands.iter().any(|o| o.layout.elements() == 0) {
        return Some(Vec::new());
    }
    let within = |o: &Operand| fits(caps, o) && o.layout.elements() <= MAX_ELEMENTS;
    let small = operands.iter().all(within);
    if collapsed.dims.rank() <= most && small {
        return Some(vec![Piece {
            operands: operands.to_vec(),
            collapsed,
        }]);
    }
    let dims = layouts.first()?.dims();
    let dim = (0..rank).find(|&dim| dims[dim] > 1)?;
    // If only the rank is too large, single indices of the outermost dim reduce it by one.
    let step = if small { 1 } else { dims[dim].div_ceil(2) };
    let mut all = Vec::new();
    for start in (0..dims[dim]).step_by(step) {
        let end = (start + step).min(dims[dim]);
        let cut = operands
            .iter()
            .map(|operand| slice(operand, dim, start..end));
        all.extend(pieces(caps, &cut.collect::<Option<Vec<_>>>()?, rank, most)?);
    }
    Some(all)
}

/// The layout of the first element of each index of the first `rank` dims.
fn first_dims(operand: &Operand, rank: usize) -> Option<Layout> {
    let layout = &operand.layout;
    let dims = Dims::new(layout.dims().get(..rank)?)?;
    let strides = Dims::new(layout.strides().get(..rank)?)?;
    Layout::strided(dims, strides, layout.offset())
}
