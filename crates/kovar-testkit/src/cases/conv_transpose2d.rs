//! Cases of `conv_transpose2d`.

use kovar_core::DType;
use kovar_core::ops::{ConvTranspose2d, Precision};

use super::Case;
use super::convolution::{Attributes, Convolution, Shape, case, sweep};

impl Attributes for ConvTranspose2d {
    const NAME: &'static str = "conv_transpose2d";

    fn label(&self) -> String {
        let ConvTranspose2d {
            stride: [sy, sx],
            padding: [py, px],
            output_padding: [oy, ox],
            dilation: [dy, dx],
            groups,
            ..
        } = self;
        format!("s={sy}x{sx},p={py}x{px},op={oy}x{ox},d={dy}x{dx},g={groups}")
    }

    fn precision(&mut self) -> &mut Precision {
        &mut self.precision
    }

    fn weight_dims(&self, c_in: usize, [c_out, kh, kw]: [usize; 3]) -> [usize; 4] {
        [c_in, c_out / self.groups, kh, kw]
    }
}

/// Images, kernels and attributes.
fn shapes() -> Vec<Shape<ConvTranspose2d>> {
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

pub(super) fn tests() -> Vec<Case> {
    let shapes = shapes();
    sweep(&shapes, shapes[2], shapes[11])
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
