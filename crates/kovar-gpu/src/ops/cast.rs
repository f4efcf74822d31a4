//! Casts between plain dtypes.

use kovar_core::DType;

use super::pieces::{per_word, pieces};
use super::rearrange::unit;
use super::{WORKGROUP, narrow};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::seam::Caps;
use crate::view::{Operand, four};

static KERNEL: Kernel = Kernel::new("cast_elements", 1);

/// The number of a plain dtype in `shared/number.wgsl`; `None` of block dtypes.
pub(super) fn number(dtype: DType) -> Option<u32> {
    Some(match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::BF16 => 2,
        DType::F8E4M3 => 3,
        DType::F8E5M2 => 4,
        DType::F64 => 5,
        DType::I8 => 6,
        DType::U8 => 7,
        DType::I16 => 8,
        DType::I32 => 9,
        DType::I64 => 10,
        DType::Bool => 11,
        _ => return None,
    })
}

/// The dispatches that cast `x` to `out`, of the same dims; `None` of other dims or block dtypes.
pub(super) fn plan(caps: &Caps, out: &Operand, x: &Operand) -> Option<Vec<Dispatch>> {
    let rank = out.layout.dims().rank();
    let mut dispatches = Vec::new();
    for piece in pieces(caps, &[out.clone(), x.clone()], rank, 4)? {
        let views = piece.views(caps);
        let [out_view, x_view] = views.as_slice() else {
            return None;
        };
        let dims = &piece.collapsed.dims;
        let elements = dims.elements()?;
        let ((shift, pairs), (x_shift, x_pairs)) = (unit(out.dtype)?, unit(x.dtype)?);
        let dims = four(dims, 1);
        let per = per_word(out_view, dims[3], 1 << shift);
        let kinds = [number(x.dtype)?, number(out.dtype)?, x_shift, x_pairs];
        let params = Params::new()
            .vec4(dims)
            .view(*out_view)
            .view(*x_view)
            .vec4(kinds);
        let invocations = u32::try_from(elements).ok()? / per;
        dispatches.push(Dispatch {
            kernel: &KERNEL,
            features: narrow(shift > 0),
            constants: vec![
                ("SHIFT", shift),
                ("PER", per),
                ("PAIRS", pairs),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: piece.operands,
            workgroups: invocations.div_ceil(WORKGROUP),
        });
    }
    Some(dispatches)
}
