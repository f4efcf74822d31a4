//! What the cases of operations on one image share.

use kovar_core::DType;
use kovar_core::ops::Op;

use super::{Case, FLOATS, Form, Place, Target, lower};
use crate::synthetic::Fill;

/// A case's dtype and layout, and what the image is filled with.
#[derive(Clone)]
pub(super) struct Image {
    dtype: DType,
    pub(super) dims: [usize; 4],
    form: Form,
    target: Target,
    fill: Fill,
}

impl Image {
    /// Gaussian F32, contiguous.
    pub(super) fn new(dims: [usize; 4]) -> Self {
        Self {
            dtype: DType::F32,
            dims,
            form: Form::Contiguous,
            target: Target::Fresh,
            fill: Fill::Gaussian(1.0),
        }
    }

    /// The case of `op`, named `name`, on the image; `shape` says the rest of the attributes.
    pub(super) fn case(self, name: &'static str, op: Op, shape: String) -> Case {
        let hard = match self.fill {
            Fill::Small => ",small",
            Fill::Large(_) => ",large",
            _ => "",
        };
        let layout = format!("{}-{}", self.form.name(), self.target.name());
        let labels = (lower(self.dtype), shape + hard, layout);
        Case::new(name, name, labels, move |setup| {
            let Self {
                dtype,
                dims,
                form,
                target,
                fill,
            } = self.clone();
            let x = setup.operand("x", Place::Temp, dtype, &dims, form, fill)?;
            setup.apply(op.clone(), &[x], target)?;
            Ok(())
        })
    }
}

/// Every shape, whose first part is the image, in every mode; the second and third shape in every
/// layout.
pub(super) fn sweep<M: Copy, R: Copy>(
    modes: &[M],
    shapes: &[([usize; 4], R)],
    case: impl Fn(Image, M, R) -> Case,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for &mode in modes {
            let image = |dims| Image {
                dtype,
                ..Image::new(dims)
            };
            for &(dims, rest) in shapes {
                cases.push(case(image(dims), mode, rest));
            }
            let [_, (hard, of_hard), (strided, of_strided), ..] = *shapes else {
                continue;
            };
            for fill in [Fill::Small, Fill::large(dtype)] {
                let image = Image {
                    fill,
                    ..image(hard)
                };
                cases.push(case(image, mode, of_hard));
            }
            for form in Form::ALL {
                if form != Form::Contiguous {
                    let image = Image {
                        form,
                        ..image(strided)
                    };
                    cases.push(case(image, mode, of_strided));
                }
                if !matches!(form, Form::Contiguous | Form::Repeated) {
                    let target = Target::Into(form);
                    let image = Image {
                        target,
                        ..image(hard)
                    };
                    cases.push(case(image, mode, of_hard));
                }
            }
        }
    }
    cases
}
