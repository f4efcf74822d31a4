//! Operations whose every result element follows from the operands' elements at the same place.

use kovar_core::{Collapsed, collapse};
use kovar_core::{DType, Layout};

use super::code;
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, View, four};

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;

/// The names of the constants that tell operands' dtypes, the result's first.
const DTYPES: [&str; 4] = ["OUT_DTYPE", "A_DTYPE", "B_DTYPE", "C_DTYPE"];

/// Dispatches of a kernel whose parameters are `dims`, a view of each operand, the result's first,
/// and the vector `extra`. `operands` have the dims of the result; `None` if they have not.
pub(super) fn plan(
    caps: &Caps,
    kernel: &'static Kernel,
    operands: &[Operand],
    constants: &[(&'static str, u32)],
    extra: [f32; 4],
) -> Option<Vec<Dispatch>> {
    let mut dispatches = Vec::new();
    for piece in pieces(caps, operands)? {
        let (out, collapsed) = (piece.operands.first()?, &piece.collapsed);
        let views = piece.views(caps);
        let narrow = out.dtype != DType::F32;
        let per = if narrow && pairs(collapsed, views.first()?) {
            2
        } else {
            1
        };
        let mut constants = constants.to_vec();
        for (name, operand) in DTYPES.iter().zip(&piece.operands) {
            constants.push((name, code(operand.dtype)));
        }
        constants.extend([("PER", per), ("WORKGROUP", WORKGROUP)]);
        let mut params = Params::new().vec4(four(&collapsed.dims, 1));
        for view in views {
            params = params.view(view);
        }
        let invocations = collapsed.dims.elements()? / per as usize;
        dispatches.push(Dispatch {
            kernel,
            features: if narrow {
                Features::NARROW
            } else {
                Features::NONE
            },
            constants,
            params: params.floats(extra).finish(),
            operands: piece.operands,
            workgroups: u32::try_from(invocations).ok()?.div_ceil(WORKGROUP),
        });
    }
    Some(dispatches)
}

/// Whether invocations can write pairs of 16-bit elements as words.
fn pairs(collapsed: &Collapsed, out: &View) -> bool {
    let [outer @ .., inner] = out.strides;
    collapsed.dims.from_end(0).is_multiple_of(2)
        && inner == 1
        && outer.iter().chain([&out.offset]).all(|&step| step % 2 == 0)
}

/// Operands of equal dims that kernels can take: of at most four collapsed dims, each within a
/// binding.
pub(super) struct Piece {
    pub operands: Vec<Operand>,
    pub collapsed: Collapsed,
}

impl Piece {
    /// The operands' views.
    pub fn views(&self, caps: &Caps) -> Vec<View> {
        let operands = self.operands.iter().zip(&self.collapsed.strides);
        operands
            .map(|(operand, strides)| operand.view(strides, caps.binding_alignment))
            .collect()
    }
}

/// Operands of equal dims cut along their outermost dims until kernels can take them; `None` if
/// the dims differ or an element alone is too large.
pub(super) fn pieces(caps: &Caps, operands: &[Operand]) -> Option<Vec<Piece>> {
    let layouts: Vec<&Layout> = operands.iter().map(|operand| &operand.layout).collect();
    let collapsed = collapse(&layouts)?;
    let elements = collapsed.dims.elements()?;
    if elements == 0 {
        return Some(Vec::new());
    }
    let fits = |operand: &Operand| operand.fits(caps.binding_alignment, caps.max_binding_bytes);
    let small = elements <= (u32::MAX / 2) as usize && operands.iter().all(fits);
    if collapsed.dims.rank() <= 4 && small {
        return Some(vec![Piece {
            operands: operands.to_vec(),
            collapsed,
        }]);
    }
    let dims = layouts.first()?.dims();
    let dim = (0..dims.rank()).find(|&dim| dims[dim] > 1)?;
    let step = match small {
        // Only the rank is too large: without the outermost dim it is one less.
        true => 1,
        false => dims[dim].div_ceil(2),
    };
    let mut all = Vec::new();
    for start in (0..dims[dim]).step_by(step) {
        let end = (start + step).min(dims[dim]);
        let cut = operands.iter().map(|operand| {
            let layout = operand.layout.slice(dim, start..end)?;
            Some(operand.with_layout(layout))
        });
        all.extend(pieces(caps, &cut.collect::<Option<Vec<_>>>()?)?);
    }
    Some(all)
}
