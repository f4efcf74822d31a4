//! Cases of `conv_transpose2d`.

use kovar_core::DType;
use kovar_core::ops::{ConvTranspose2d, Precision};

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
    attributes: ConvTranspose2d,
    bias: Option<(DType, Form)>,
    place: Place,
    /// Of `x` and of the weight.
    forms: [Form; 2],
    target: Target,
    fill: Fill,
}

type Shape = ([usize; 4], [usize; 3], ConvTranspose2d);

/// Images, kernels and attributes.
fn shapes() -> Vec<Shape> {
    let plain = ConvTranspose2d::default();
    let strided = |stride, padding, output_padding, dilation| ConvTranspose2d {
        stride,
        padding,
        output_padding,
        dilation,
        ..plain
    };
    let grouped = |groups| ConvTranspose2d {
        groups,
        ..strided([2, 2], [1, 1], [1, 1], [1, 1])
    };
    vec![
        ([1, 3, 5, 6], [4, 3, 3], plain),
        (
            [2, 4, 5, 5],
            [6, 4, 4],
            strided([2, 2], [1, 1], [0, 0], [1, 1]),
        ),
        (
            [2, 5, 4, 7],
            [7, 3, 3],
            strided([2, 2], [1, 1], [1, 1], [1, 1]),
        ),
        (
            [1, 4, 6, 5],
            [3, 5, 2],
            strided([2, 3], [0, 2], [1, 2], [1, 1]),
        ),
        (
            [1, 2, 6, 9],
            [9, 3, 3],
            strided([1, 1], [2, 2], [0, 0], [2, 2]),
        ),
        (
            [1, 3, 5, 8],
            [4, 2, 3],
            strided([3, 2], [1, 3], [0, 2], [1, 3]),
        ),
        (
            [1, 2, 4, 4],
            [3, 3, 3],
            strided([2, 2], [0, 1], [0, 0], [2, 4]),
        ),
        ([2, 6, 4, 5], [6, 3, 3], grouped(6)),
        ([2, 6, 4, 5], [9, 3, 3], grouped(3)),
        ([1, 1, 1, 1], [3, 3, 3], plain),
        // A stride beyond the kernel leaves pixels that no tap reaches.
        (
            [1, 3, 4, 3],
            [5, 2, 2],
            strided([5, 4], [0, 1], [3, 3], [1, 1]),
        ),
        (
            [1, 23, 5, 30],
            [33, 2, 2],
            strided([2, 2], [0, 0], [0, 0], [1, 1]),
        ),
        (
            [1, 4, 3, 3],
            [2, 3, 3],
            strided([1, 1], [2, 2], [0, 0], [1, 1]),
        ),
    ]
}

impl Convolution {
    fn new([x, weight]: [DType; 2], (image, kernel, attributes): Shape) -> Self {
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
            fill: Fill::Gaussian(1.0),
        }
    }
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for x in FLOATS {
        for weight in FLOATS {
            for (i, shape) in shapes().into_iter().enumerate() {
                let biases = [Some((DType::F32, Form::Contiguous)), None];
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
                bias: Some((x, Form::Offset)),
                ..base.clone()
            }));
        }
        for form in Form::ALL {
            for place in [Place::Weight, Place::Temp] {
                cases.push(case(Convolution {
                    place,
                    forms: [Form::Contiguous, form],
                    ..base.clone()
                }));
            }
            cases.push(case(Convolution {
                forms: [form, Form::Contiguous],
                place: Place::Input,
                ..base.clone()
            }));
        }
    }
    let base = Convolution::new([DType::F32; 2], shapes().swap_remove(11));
    let precision = Precision::F32;
    cases.push(case(Convolution {
        attributes: ConvTranspose2d {
            precision,
            ..base.attributes
        },
        ..base.clone()
    }));
    for fill in [Fill::Small, Fill::large(DType::F32)] {
        cases.push(case(Convolution {
            fill,
            ..base.clone()
        }));
    }
    let empty = ([0, 3, 5, 5], [2, 3, 3], ConvTranspose2d::default());
    cases.push(case(Convolution {
        place: Place::Temp,
        ..Convolution::new([DType::F32; 2], empty)
    }));
    // No channels: the bias alone.
    let empty = ([2, 0, 4, 4], [3, 3, 3], ConvTranspose2d::default());
    cases.push(case(Convolution {
        place: Place::Temp,
        bias: Some((DType::F32, Form::Contiguous)),
        ..Convolution::new([DType::F32; 2], empty)
    }));
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let doubled = ConvTranspose2d {
        stride: [2; 2],
        padding: [1; 2],
        ..ConvTranspose2d::default()
    };
    let shape = ([1, 256, 32, 32], [128, 4, 4], doubled);
    [DType::F32, DType::F16]
        .into_iter()
        .map(|weight| case(Convolution::new([DType::F32, weight], shape)))
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
        ref fill,
    } = convolution;
    let ConvTranspose2d {
        stride: [sy, sx],
        padding: [py, px],
        output_padding: [oy, ox],
        dilation: [dy, dx],
        groups,
        precision,
    } = attributes;
    let mut shape = format!(
        "{},kernel={c_out}x{kh}x{kw},s={sy}x{sx},p={py}x{px},op={oy}x{ox},d={dy}x{dx},g={groups}",
        sizes(&image)
    );
    if precision == Precision::F32 {
        shape += ",f32";
    }
    shape += match fill {
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
    let op = "conv_transpose2d";
    Case::new(op, op, (dtypes, shape, layout), move |setup| {
        let fill = convolution.fill.clone();
        let dims = [image[1], c_out / groups, kh, kw];
        let mut inputs = vec![
            setup.operand("x", Place::Temp, x, &image, forms[0], fill)?,
            setup.operand(
                "weight",
                place,
                weight,
                &dims,
                forms[1],
                Fill::Gaussian(1.0),
            )?,
        ];
        if let Some((bias, form)) = bias {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand("bias", Place::Weight, bias, &[c_out], form, fill)?);
        }
        setup.apply(attributes, &inputs, target)?;
        Ok(())
    })
}
