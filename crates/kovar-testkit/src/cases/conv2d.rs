//! Cases of `conv2d`.

use kovar_core::DType;
use kovar_core::ops::{Conv2d, Precision};

use super::convolution::{Attributes, Convolution, Shape, case, sweep};
use super::{Case, FLOATS};

impl Attributes for Conv2d {
    const NAME: &'static str = "conv2d";

    fn label(&self) -> String {
        let Conv2d {
            stride: [sy, sx],
            padding: [py, px],
            dilation: [dy, dx],
            groups,
            ..
        } = self;
        format!("s={sy}x{sx},p={py}x{px},d={dy}x{dx},g={groups}")
    }

    fn precision(&mut self) -> &mut Precision {
        &mut self.precision
    }

    fn weight_dims(&self, c_in: usize, [c_out, kh, kw]: [usize; 3]) -> [usize; 4] {
        [c_out, c_in / self.groups, kh, kw]
    }
}

fn same(groups: usize, padding: [usize; 2]) -> Conv2d {
    Conv2d {
        padding,
        groups,
        ..Conv2d::default()
    }
}

/// Images, kernels and attributes.
fn shapes() -> Vec<Shape<Conv2d>> {
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

pub(super) fn tests() -> Vec<Case> {
    let shapes = shapes();
    let mut cases = sweep(&shapes, shapes[2], shapes[10]);
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
