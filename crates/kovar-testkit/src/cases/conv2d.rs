//! Cases of `conv2d`.

use kovar_core::DType;
use kovar_core::ops::{Conv2d, Precision};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Convolution {
    x: DType,
    weight: DType,
    /// `[batch, c_in, h, w]`.
    image: [usize; 4],
    /// `[c_out, kh, kw]`.
    kernel: [usize; 3],
    attributes: Conv2d,
    bias: Option<(DType, Form)>,
    place: Place,
    /// Of `x` and of the weight.
    forms: [Form; 2],
    target: Target,
    fills: [Fill; 2],
}

fn same(groups: usize, padding: [usize; 2]) -> Conv2d {
    Conv2d {
        padding,
        groups,
        ..Conv2d::default()
    }
}

/// Images, kernels and attributes.
fn shapes() -> Vec<([usize; 4], [usize; 3], Conv2d)> {
    let strided = |stride, padding, dilation| Conv2d {
        stride,
        padding,
        dilation,
        ..Conv2d::default()
    };
    vec![
        ([1, 3, 7, 9], [5, 3, 3], same(1, [1, 1])),
        ([2, 4, 8, 8], [6, 1, 1], Conv2d::default()),
        ([2, 5, 9, 13], [7, 3, 3], strided([2, 2], [1, 1], [1, 1])),
        ([1, 4, 11, 10], [3, 5, 2], strided([2, 3], [0, 2], [1, 1])),
        ([1, 2, 12, 9], [9, 3, 3], strided([1, 1], [2, 2], [2, 2])),
        ([1, 3, 10, 17], [4, 2, 3], strided([3, 2], [4, 1], [1, 3])),
        ([2, 6, 6, 5], [6, 3, 3], same(6, [1, 1])),
        ([2, 6, 6, 5], [9, 3, 3], same(3, [1, 0])),
        ([1, 1, 1, 1], [3, 3, 3], same(1, [1, 1])),
        ([1, 1, 4, 4], [1, 4, 4], Conv2d::default()),
        ([1, 23, 5, 30], [33, 3, 3], same(1, [1, 1])),
        ([3, 1, 3, 40], [2, 1, 7], same(1, [0, 3])),
        ([2, 2, 2, 2], [3, 2, 2], same(1, [5, 5])),
    ]
}

impl Convolution {
    fn new(
        [x, weight]: [DType; 2],
        (image, kernel, attributes): ([usize; 4], [usize; 3], Conv2d),
    ) -> Self {
        // A single sum may cancel, and then its error says nothing.
        let single = image[0] * kernel[0] == 1;
        let fill = match single {
            true => Fill::Positive,
            false => Fill::Gaussian(1.0),
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

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for x in FLOATS {
        for weight in FLOATS {
            for (i, shape) in shapes().into_iter().enumerate() {
                let biases = [None, Some((DType::F32, Form::Contiguous))];
                cases.push(case(Convolution {
                    bias: biases[i % 2],
                    ..Convolution::new([x, weight], shape)
                }));
            }
        }
        let base = Convolution::new([x, DType::F32], shapes().swap_remove(2));
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
    let base = Convolution::new([DType::F32; 2], shapes().swap_remove(10));
    let precision = Precision::F32;
    cases.push(case(Convolution {
        attributes: Conv2d {
            precision,
            ..base.attributes
        },
        ..base.clone()
    }));
    for (image, kernel) in [([0, 3, 5, 5], [2, 3, 3]), ([1, 3, 5, 5], [0, 3, 3])] {
        let shape = (image, kernel, Conv2d::default());
        cases.push(case(Convolution {
            place: Place::Temp,
            ..Convolution::new([DType::F32; 2], shape)
        }));
    }
    // No channels: the bias alone.
    let shape = ([2, 0, 4, 4], [3, 3, 3], Conv2d::default());
    cases.push(case(Convolution {
        place: Place::Temp,
        bias: Some((DType::F32, Form::Contiguous)),
        ..Convolution::new([DType::F32; 2], shape)
    }));
    for fills in [
        [Fill::Small, Fill::Small],
        [Fill::large(DType::F32), Fill::Gaussian(1.0)],
    ] {
        cases.push(case(Convolution {
            fills,
            ..base.clone()
        }));
    }
    // More terms than a panel holds, and more pixels than a part.
    for (image, kernel) in [([1, 70, 9, 33], [21, 3, 3]), ([1, 300, 4, 4], [70, 1, 1])] {
        let padding = kernel[1] / 2;
        let shape = (image, kernel, same(1, [padding; 2]));
        for weight in FLOATS {
            cases.push(case(Convolution::new([DType::F32, weight], shape)));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let strided = Conv2d {
        stride: [2; 2],
        padding: [1; 2],
        ..Conv2d::default()
    };
    [
        ([1, 320, 64, 64], [320, 3, 3], same(1, [1, 1])),
        ([1, 1280, 16, 16], [1280, 3, 3], same(1, [1, 1])),
        ([1, 640, 32, 32], [640, 1, 1], Conv2d::default()),
        ([1, 320, 64, 64], [320, 3, 3], strided),
        ([1, 256, 64, 64], [256, 3, 3], same(256, [1, 1])),
    ]
    .into_iter()
    .flat_map(|shape| {
        [DType::F32, DType::F16].map(|weight| case(Convolution::new([DType::F32, weight], shape)))
    })
    .collect()
}

fn case(convolution: Convolution) -> Case {
    let Convolution {
        x,
        weight,
        image,
        kernel: [c_out, kh, kw],
        attributes,
        bias,
        place,
        forms,
        target,
        ref fills,
    } = convolution;
    let Conv2d {
        stride: [sy, sx],
        padding: [py, px],
        dilation: [dy, dx],
        groups,
        precision,
    } = attributes;
    let mut shape = format!(
        "{},kernel={c_out}x{kh}x{kw},s={sy}x{sx},p={py}x{px},d={dy}x{dx},g={groups}",
        sizes(&image)
    );
    if precision == Precision::F32 {
        shape += ",f32";
    }
    shape += match fills[0] {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
    };
    let mut dtypes = format!("{}x{}", lower(x), lower(weight));
    let place_name = format!("{place:?}").to_lowercase();
    let mut layout = format!(
        "{}-{place_name}_{}-{}",
        forms[0].name(),
        forms[1].name(),
        target.name()
    );
    if let Some((bias, form)) = bias {
        dtypes += &format!("x{}", lower(bias));
        layout += &format!("-bias_{}", form.name());
    }
    Case::new("conv2d", "conv2d", (dtypes, shape, layout), move |setup| {
        let [x_fill, weight_fill] = convolution.fills.clone();
        let per_group = image[1] / groups;
        let dims = [c_out, per_group, kh, kw];
        let mut inputs = vec![
            setup.operand("x", Place::Temp, x, &image, forms[0], x_fill)?,
            setup.operand("weight", place, weight, &dims, forms[1], weight_fill)?,
        ];
        if let Some((bias, form)) = bias {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand("bias", Place::Weight, bias, &[c_out], form, fill)?);
        }
        setup.apply(attributes, &inputs, target)?;
        Ok(())
    })
}
