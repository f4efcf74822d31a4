//! Operations that compute each element of the result from the operands' elements at the same
//! index.

use kovar_core::DType;

use super::pieces::{per_word, pieces};
use super::rows::dtypes;
use super::{WORKGROUP, narrow};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, four};

/// Dispatches of a kernel whose parameters are `dims`, a view of each operand, the result's first,
/// and the vector `extra`. `None` if an operand does not have the dims of the result.
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
        let is_narrow = out.dtype != DType::F32;
        let dims = four(&collapsed.dims, 1);
        let per = per_word(views.first()?, dims[3], if is_narrow { 2 } else { 1 });
        let mut constants = [constants, &dtypes(&piece.operands)].concat();
        constants.extend([("PER", per), ("WORKGROUP", WORKGROUP)]);
        let mut params = Params::new().vec4(dims);
        for view in views {
            params = params.view(view);
        }
        let invocations = collapsed.dims.elements()? / per as usize;
        dispatches.push(Dispatch {
            kernel,
            features: narrow(is_narrow),
            constants,
            params: params.floats(extra).finish(),
            operands: piece.operands,
            workgroups: u32::try_from(invocations).ok()?.div_ceil(WORKGROUP),
        });
    }
    Some(dispatches)
}
