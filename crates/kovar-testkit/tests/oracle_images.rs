//! The oracle of operations on images and of 8-bit products, against numbers worked out by hand.

use kovar_core::ops::{
    Conv2d, ConvTranspose2d, Gemm, MatmulI8, MatmulId, Op, Pool2d, PoolKind, QuantizeRows,
    RowScales, Upscale, UpscaleMode,
};
use kovar_core::{DType, Graph};
use kovar_testkit::oracle::{Activations, run_node};
use kovar_testkit::{Elements, TensorData};

type Of<'a> = (DType, &'a [usize], &'a [f64]);

fn run(op: impl Into<Op>, operands: &[Of<'_>]) -> Vec<f64> {
    let mut graph = Graph::new();
    let (mut ids, mut data) = (Vec::new(), Vec::new());
    for (i, &(dtype, dims, values)) in operands.iter().enumerate() {
        ids.push(graph.temp(&format!("x{i}"), dtype, dims).unwrap());
        data.push(match dtype {
            DType::I8 | DType::I32 => {
                TensorData::ints(dims, values.iter().map(|&v| v as i64).collect()).unwrap()
            }
            _ => TensorData::floats(dims, values.to_vec()).unwrap(),
        });
    }
    graph.apply(op.into(), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &data, &[], Activations::Exact).unwrap();
    assert_eq!(output.data.dims(), &**node.output().dims());
    match output.data.elements() {
        Elements::Float(values) => values.clone(),
        Elements::Int(values) => values.iter().map(|&v| v as f64).collect(),
    }
}

fn f<'a>(dims: &'a [usize], values: &'a [f64]) -> Of<'a> {
    (DType::F32, dims, values)
}

fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + seed) % 11) as f64 - 5.0).collect()
}

#[test]
fn a_convolution_slides_the_kernel_without_turning_it() {
    let x = f(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = f(&[1, 1, 2, 2], &[1.0, 10.0, 100.0, 1000.0]);
    let y = run(Conv2d::default(), &[x, w, f(&[1], &[0.5])]);
    assert_eq!(y, [5421.5, 6532.5]);
    let padded = Conv2d {
        padding: [1, 0],
        stride: [2, 1],
        ..Conv2d::default()
    };
    assert_eq!(run(padded, &[x, w]), [2100.0, 3200.0, 54.0, 65.0]);
}

#[test]
fn groups_see_their_own_channels() {
    let x = f(&[1, 2, 1, 1], &[3.0, 5.0]);
    let grouped = Conv2d {
        groups: 2,
        ..Conv2d::default()
    };
    let w = f(&[4, 1, 1, 1], &[1.0, 2.0, 10.0, 20.0]);
    assert_eq!(run(grouped, &[x, w]), [3.0, 6.0, 50.0, 100.0]);
}

#[test]
fn the_transposed_convolution_is_the_adjoint_of_the_convolution() {
    let forward = Conv2d {
        stride: [2, 3],
        padding: [1, 2],
        dilation: [2, 1],
        groups: 2,
        ..Conv2d::default()
    };
    // `[1, 4, 8, 10]` with kernels of 3 and 4 becomes `[1, 6, 3, 4]`; one row and one column
    // of the image are not reached.
    let (x, w) = (numbers(4 * 8 * 10, 1), numbers(6 * 2 * 3 * 4, 3));
    let y = run(forward, &[f(&[1, 4, 8, 10], &x), f(&[6, 2, 3, 4], &w)]);
    let other = numbers(y.len(), 5);
    let back = ConvTranspose2d {
        stride: forward.stride,
        padding: forward.padding,
        dilation: forward.dilation,
        output_padding: [1, 1],
        groups: 2,
        ..ConvTranspose2d::default()
    };
    let z = run(back, &[f(&[1, 6, 3, 4], &other), f(&[6, 2, 3, 4], &w)]);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert_eq!(z.len(), x.len());
    assert_eq!(dot(&y, &other), dot(&x, &z));
}

#[test]
fn an_average_counts_the_padding_only_if_asked_to() {
    let x = f(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 6.0]);
    let pool = |kind| Pool2d {
        kind,
        kernel: [2; 2],
        stride: [2; 2],
        padding: [1; 2],
    };
    let average = |count_include_pad| pool(PoolKind::Average { count_include_pad });
    assert_eq!(run(average(true), &[x]), [0.25, 0.5, 0.75, 1.5]);
    assert_eq!(run(average(false), &[x]), [1.0, 2.0, 3.0, 6.0]);
    let negative = f(&[1, 1, 2, 2], &[-1.0, -2.0, -3.0, -6.0]);
    // The padding is no zero to the maximum.
    assert_eq!(
        run(pool(PoolKind::Max), &[negative]),
        [-1.0, -2.0, -3.0, -6.0]
    );
}

#[test]
fn an_image_is_enlarged_as_by_pytorch() {
    let x = f(&[1, 1, 1, 2], &[1.0, 2.0]);
    let to = |n: usize, mode| Upscale { size: [1, n], mode };
    let bilinear = |align_corners| UpscaleMode::Bilinear { align_corners };
    assert_eq!(
        run(to(5, UpscaleMode::Nearest), &[x]),
        [1.0, 1.0, 1.0, 2.0, 2.0]
    );
    assert_eq!(run(to(4, bilinear(false)), &[x]), [1.0, 1.25, 1.75, 2.0]);
    assert_eq!(
        run(to(5, bilinear(true)), &[x]),
        [1.0, 1.25, 1.5, 1.75, 2.0]
    );
}

#[test]
fn gemm_scales_and_transposes() {
    let a = f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (b, c) = (f(&[2, 1], &[1.0, -1.0]), f(&[1], &[7.0]));
    let op = Gemm {
        alpha: 2.0,
        beta: -1.0,
        transpose_a: true,
        ..Gemm::default()
    };
    assert_eq!(run(op, &[a, b, c]), [-13.0, -13.0, -13.0]);
}

#[test]
fn rows_become_codes_and_products_of_codes() {
    let x = f(&[2, 3], &[127.0, -63.5, 0.4, 0.0, 0.0, 0.0]);
    assert_eq!(run(RowScales, &[x]), [1.0, 0.0]);
    // Halves go to the even code, and zeros by a scale of zero are zero.
    let codes = run(QuantizeRows, &[x, f(&[2], &[1.0, 0.0])]);
    assert_eq!(codes, [127.0, -64.0, 0.0, 0.0, 0.0, 0.0]);
    let w = (DType::I8, &[2usize, 2][..], &[1.0, 2.0, -3.0, 4.0][..]);
    let x = (DType::I8, &[1usize, 2][..], &[10.0, -1.0][..]);
    let y = run(MatmulI8, &[w, f(&[2], &[0.5, 2.0]), x, f(&[1], &[10.0])]);
    assert_eq!(y, [40.0, -680.0]);
}

#[test]
fn tokens_go_through_the_experts_they_name() {
    let w = f(&[2, 1, 2], &[1.0, 2.0, 10.0, 20.0]);
    let x = f(&[2, 1, 2], &[1.0, 1.0, 2.0, 0.0]);
    let ids = (DType::I32, &[2usize, 2][..], &[1.0, 0.0, 2.0, 1.0][..]);
    assert_eq!(
        run(MatmulId::default(), &[w, x, ids]),
        [30.0, 3.0, 0.0, 20.0]
    );
}
