//! Cases that both convolutions share.

use kovar_core::DType;
use kovar_core::ops::{Op, Precision};

use super::sweep::hard;
use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// The attributes of a convolution of one kind.
pub(super) trait Attributes: Copy + Default + Into<Op> + Send + Sync + 'static {
    /// The operation's name.
    const NAME: &'static str;

    /// All but the precision, for names.
    fn label(&self) -> String;

    fn precision(&mut self) -> &mut Precision;

    /// The weight's dims of a kernel `[c_out, kh, kw]` on `c_in` channels.
    fn weight_dims(&self, c_in: usize, kernel: [usize; 3]) -> [usize; 4];
}

/// An image `[batch, c_in, h, w]`, a kernel `[c_out, kh, kw]` and attributes.
pub(super) type Shape<A> = ([usize; 4], [usize; 3], A);

#[derive(Clone)]
pub(super) struct Convolution<A> {
    x: DType,
    weight: DType,
    image: [usize; 4],
    kernel: [usize; 3],
    attributes: A,
    bias: Option<(DType, Form)>,
    place: Place,
    /// Of `x` and of the weight.
    forms: [Form; 2],
    target: Target,
    fills: [Fill; 2],
}

impl<A: Attributes> Convolution<A> {
    pub(super) fn new([x, weight]: [DType; 2], (image, kernel, attributes): Shape<A>) -> Self {
        // A single sum may cancel, which makes its relative error meaningless.
        let is_single = image[0] * kernel[0] == 1;
        let fill = if is_single {
            Fill::Positive
        } else {
            Fill::Gaussian(1.0)
        };
        Self {
            x,
            weight,
            image,
            kernel,
            attributes,
            bias: None,
            place: Place::Weight,
            forms: [Form::Contiguous; 2],
            target: Target::Fresh,
            fills: [fill.clone(), fill],
        }
    }
}

/// Every shape in every pair of dtypes, `strided` of them in every layout, and `wide` with hard
/// numbers.
pub(super) fn sweep<A: Attributes>(
    shapes: &[Shape<A>],
    strided: Shape<A>,
    wide: Shape<A>,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for x in FLOATS {
        for weight in FLOATS {
            for (i, shape) in shapes.iter().enumerate() {
                let biases = [None, Some((DType::F32, Form::Contiguous))];
                cases.push(case(Convolution {
                    bias: biases[i % 2],
                    ..Convolution::new([x, weight], *shape)
                }));
            }
        }
        let base = Convolution::new([x, DType::F32], strided);
        for target in [
            Form::Offset,
            Form::Gaps,
            Form::Permuted,
            Form::Transposed,
            Form::Window,
        ] {
            cases.push(case(Convolution {
                target: Target::Into(target),
                bias: Some((x, Form::Contiguous)),
                ..base.clone()
            }));
        }
        for form in Form::ALL {
            for place in [Place::Weight, Place::Temp] {
                for weight in [DType::F32, DType::F16] {
                    // Among the shapes above.
                    if (form, place) == (Form::Contiguous, Place::Weight) {
                        continue;
                    }
                    cases.push(case(Convolution {
                        weight,
                        place,
                        forms: [Form::Contiguous, form],
                        ..base.clone()
                    }));
                }
            }
            cases.push(case(Convolution {
                forms: [form, Form::Contiguous],
                place: Place::Input,
                ..base.clone()
            }));
        }
        for bias in FLOATS {
            for form in [Form::Offset, Form::Repeated, Form::Gaps] {
                cases.push(case(Convolution {
                    bias: Some((bias, form)),
                    ..base.clone()
                }));
            }
        }
    }
    let base = Convolution::new([DType::F32; 2], wide);
    let mut exact = base.clone();
    *exact.attributes.precision() = Precision::F32;
    cases.push(case(exact));
    for fills in [
        [Fill::Small, Fill::Small],
        [Fill::large(DType::F32), Fill::Gaussian(1.0)],
    ] {
        cases.push(case(Convolution {
            fills,
            ..base.clone()
        }));
    }
    for (image, kernel) in [([0, 3, 5, 5], [2, 3, 3]), ([1, 3, 5, 5], [0, 3, 3])] {
        cases.push(case(Convolution {
            place: Place::Temp,
            ..Convolution::new([DType::F32; 2], (image, kernel, A::default()))
        }));
    }
    // No channels: the bias alone.
    let empty = ([2, 0, 4, 4], [3, 3, 3], A::default());
    cases.push(case(Convolution {
        place: Place::Temp,
        bias: Some((DType::F32, Form::Contiguous)),
        ..Convolution::new([DType::F32; 2], empty)
    }));
    cases
}

pub(super) fn case<A: Attributes>(convolution: Convolution<A>) -> Case {
    let Convolution {
        x,
        weight,
        image,
        kernel,
        mut attributes,
        bias,
        place,
        forms,
        target,
        ref fills,
    } = convolution;
    let mut shape = format!(
        "{},kernel={},{}",
        sizes(&image),
        sizes(&kernel),
        attributes.label()
    );
    if *attributes.precision() == Precision::F32 {
        shape += ",f32";
    }
    shape += hard(&fills[0]);
    let mut dtypes = format!("{}x{}", lower(x), lower(weight));
    let mut layout = format!(
        "{}-{}_{}-{}",
        forms[0].name(),
        place.name(),
        forms[1].name(),
        target.name()
    );
    if let Some((bias, form)) = bias {
        dtypes += &format!("x{}", lower(bias));
        layout += &format!("-bias_{}", form.name());
    }
    Case::new(A::NAME, A::NAME, (dtypes, shape, layout), move |setup| {
        let [x_fill, weight_fill] = convolution.fills.clone();
        let dims = attributes.weight_dims(image[1], kernel);
        let mut inputs = vec![
            setup.operand("x", Place::Temp, x, &image, forms[0], x_fill)?,
            setup.operand("weight", place, weight, &dims, forms[1], weight_fill)?,
        ];
        if let Some((bias, form)) = bias {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand("bias", Place::Weight, bias, &kernel[..1], form, fill)?);
        }
        setup.apply(attributes, &inputs, target)?;
        Ok(())
    })
}
