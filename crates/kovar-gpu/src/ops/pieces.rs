//! Operands cut until kernels can take them.

use kovar_core::{Collapsed, Dims, Layout, collapse};

use crate::seam::Caps;
use crate::view::{Operand, View};

/// The most elements that a dispatch counts.
pub(super) const MAX_ELEMENTS: usize = (u32::MAX / 2) as usize;

/// Operands that kernels can take: of few enough collapsed outer dims, each within a binding.
pub(super) struct Piece {
    pub operands: Vec<Operand>,
    /// The outer dims, which all operands have.
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

/// Whether an operand could be bound at once wherever it began: a part of others of its size, which
/// begin elsewhere.
pub(super) fn fits_anywhere(caps: &Caps, operand: &Operand) -> bool {
    let bytes = operand.bytes();
    // The first byte may be the last before a multiple of the alignment, and the last the first of a word.
    let longest = (bytes.end - bytes.start).saturating_add(caps.binding_alignment + 2);
    longest <= caps.max_binding_bytes
}

/// Operands whose first `rank` dims are equal, cut along those, outermost first, until at most
/// `most` of them are left when collapsed and each operand fits; `None` if the dims differ or one
/// index of the outer dims alone is too large.
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
    // If only the rank is too large, it is one less without the outermost dim.
    let step = if small { 1 } else { dims[dim].div_ceil(2) };
    let mut all = Vec::new();
    for start in (0..dims[dim]).step_by(step) {
        let end = (start + step).min(dims[dim]);
        let cut = operands.iter().map(|operand| {
            let layout = operand.layout.slice(dim, start..end)?;
            Some(operand.with_layout(layout))
        });
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
