//! Operations whose every result element follows from the operands' elements at the same place.

use kovar_core::{Collapsed, DType};

use super::pieces::pieces;
use super::{WORKGROUP, code};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, View, four};

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
    for piece in pieces(caps, operands, operands.first()?.layout.dims().rank(), 4)? {
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
