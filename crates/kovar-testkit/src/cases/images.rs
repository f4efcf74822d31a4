//! Sweeps that operations on one image share.

use super::sweep::Point;
use super::{Case, FLOATS, Form, Target};
use crate::synthetic::Fill;

/// Every shape, whose first part is the image, in every mode; the second and third shape in every
/// layout.
pub(super) fn sweep<M: Copy, R: Copy>(
    modes: &[M],
    shapes: &[([usize; 4], R)],
    case: impl Fn(Point, M, R) -> Case,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for &mode in modes {
            let image = |dims: [usize; 4]| Point::dense(dtype, &dims);
            for &(dims, rest) in shapes {
                cases.push(case(image(dims), mode, rest));
            }
            let [_, (hard, of_hard), (strided, of_strided), ..] = *shapes else {
                continue;
            };
            for fill in [Fill::Small, Fill::large(dtype)] {
                cases.push(case(image(hard).filled(fill), mode, of_hard));
            }
            for form in Form::ALL {
                if form != Form::Contiguous {
                    let image = image(strided).laid(form, Target::Fresh);
                    cases.push(case(image, mode, of_strided));
                }
                if !matches!(form, Form::Contiguous | Form::Repeated) {
                    let image = image(hard).laid(Form::Contiguous, Target::Into(form));
                    cases.push(case(image, mode, of_hard));
                }
            }
        }
    }
    cases
}
