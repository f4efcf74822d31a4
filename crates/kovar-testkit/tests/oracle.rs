//! The oracle against numbers worked out by hand.

use kovar_core::ops::{
    Arange, Argmax, Argsort, Attention, Binary, BinaryKind, Concat, Copy, GetRows, Glu, GluKind,
    GroupNorm, L2Norm, LayerNorm, Matmul, Op, Pad, Pairing, Reduce, ReduceKind, Repeat, RmsNorm,
    Rope, RopeApply, Scale, Softmax, SortOrder, TimestepEmbedding, TokenShift, Unary, UnaryKind,
    Wkv7,
};
use kovar_core::{DType, Dims, Graph, ValueId};
use kovar_testkit::oracle::{Activations, Output, run_node};
use kovar_testkit::{Elements, TensorData};

/// An operand: a float tensor or indices.
enum Of<'a> {
    F(&'a [usize], &'a [f64]),
    I(&'a [usize], &'a [i64]),
}
use Of::{F, I};

fn declare(graph: &mut Graph, operands: &[Of<'_>]) -> (Vec<ValueId>, Vec<TensorData>) {
    let mut ids = Vec::new();
    let mut data = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        let (dtype, dims) = match operand {
            F(dims, values) => {
                data.push(TensorData::floats(dims, values.to_vec()).unwrap());
                (DType::F32, dims)
            }
            I(dims, values) => {
                data.push(TensorData::ints(dims, values.to_vec()).unwrap());
                (DType::I32, dims)
            }
        };
        ids.push(graph.temp(&format!("x{i}"), dtype, dims).unwrap());
    }
    (ids, data)
}

fn run(op: impl Into<Op>, operands: &[Of<'_>]) -> Vec<f64> {
    let mut graph = Graph::new();
    let (ids, data) = declare(&mut graph, operands);
    graph.apply(op.into(), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &data, &[], Activations::Exact).unwrap();
    assert_eq!(output.written, None);
    assert_eq!(output.data.dims(), &**node.output().dims());
    output.data.values().unwrap().to_vec()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < 1e-12, "{found:?} is not {expected:?}");
    }
}

#[test]
fn get_rows_gives_zeros_for_indices_outside() {
    let table = F(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let rows = run(GetRows, &[table, I(&[4], &[1, -1, 0, 2])]);
    close(&rows[..6], &[4.0, 5.0, 6.0, 0.0, 0.0, 0.0]);
    close(&rows[6..], &[1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
}

#[test]
fn set_rows_marks_the_rows_it_writes_and_rounds() {
    let mut graph = Graph::new();
    let x = F(&[3, 2], &[1.0, 1.0 + 1e-5, 3.0, 4.0, 5.0, 6.0]);
    let (ids, data) = declare(&mut graph, &[x, I(&[3], &[2, 7, 0])]);
    let into = graph.state("s", DType::F16, &[4, 2]).unwrap();
    graph.set_rows(into, ids[0], ids[1]).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let Output { data, written, .. } = run_node(node, &data, &[], Activations::Exact).unwrap();
    let written = written.unwrap();
    assert_eq!(
        written,
        [true, true, false, false, true, true, false, false]
    );
    let Elements::Float(values) = data.elements() else {
        panic!("{data:?}");
    };
    assert_eq!(values[..2], [5.0, 6.0]);
    // 1e-5 is less than half a unit in the last place of an f16 near 1.
    assert_eq!(values[4..6], [1.0, 1.0]);
}

#[test]
fn matmul_multiplies_by_the_transposed_weight() {
    let w = F(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let x = F(&[2, 2], &[1.0, 10.0, -1.0, 0.5]);
    let y = run(Matmul::default(), &[w, x]);
    close(&y, &[21.0, 43.0, 65.0, 0.0, -1.0, -2.0]);
}

#[test]
fn consecutive_batches_of_a_product_share_a_weight() {
    // Two weights and four batches: 0 and 1 go with the first, 2 and 3 with the second.
    let w = F(&[2, 1, 1], &[10.0, 100.0]);
    let y = run(
        Matmul::default(),
        &[w, F(&[4, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
    );
    close(&y, &[10.0, 20.0, 300.0, 400.0]);
    // The outer dimension repeats whole.
    let w = F(&[2, 1, 1], &[10.0, 100.0]);
    let y = run(
        Matmul::default(),
        &[w, F(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
    );
    close(&y, &[10.0, 200.0, 30.0, 400.0]);
}

#[test]
fn eight_bit_activations_round_to_127_steps_of_the_largest() {
    let mut graph = Graph::new();
    let w = graph.weight("w", DType::Q8_0, &[1, 32]).unwrap();
    let x = graph.input("x", DType::F32, &[1, 32]).unwrap();
    graph.matmul(w, x).unwrap();
    let mut activations = vec![0.0; 32];
    activations[..3].copy_from_slice(&[127.0, 3.4, -1.6]);
    let data = [
        TensorData::floats(&[1, 32], vec![1.0; 32]).unwrap(),
        TensorData::floats(&[1, 32], activations).unwrap(),
    ];
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let run = |activations| run_node(node, &data, &[], activations).unwrap().data;
    close(run(Activations::Exact).values().unwrap(), &[128.8]);
    close(run(Activations::Quantized).values().unwrap(), &[128.0]);
}

#[test]
fn rms_norm_divides_by_the_root_of_the_mean_square() {
    let x = F(&[1, 2], &[3.0, 4.0]);
    let y = run(RmsNorm { eps: 3.5 }, &[x, F(&[2], &[1.0, -2.0])]);
    close(&y, &[3.0 / 4.0, -2.0]);
}

#[test]
fn rope_turns_pairs_and_copies_the_rest() {
    // One token of one head, a quarter turn of the first pair and a half turn of the second.
    let x = || F(&[1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let table = || F(&[1, 2, 2], &[0.0, 1.0, -1.0, 0.0]);
    let pairing = Pairing::Normal;
    let y = run(Rope { pairing }, &[x(), table()]);
    close(&y, &[-2.0, 1.0, -3.0, -4.0, 5.0]);
    let pairing = Pairing::Neox;
    let y = run(Rope { pairing }, &[x(), table()]);
    close(&y, &[-3.0, -2.0, 1.0, -4.0, 5.0]);
}

#[test]
fn rope_takes_the_row_of_each_token() {
    let x = F(&[2, 2, 1, 2], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    let table = F(&[2, 1, 2], &[1.0, 0.0, 0.0, 1.0]);
    let pairing = Pairing::Normal;
    let y = run(Rope { pairing }, &[x, table]);
    close(&y, &[1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0]);
}

#[test]
fn softmax_adds_the_mask_and_gives_zeros_where_all_is_excluded() {
    let inf = f64::NEG_INFINITY;
    let ln2 = 2f64.ln();
    let x = F(&[2, 3], &[0.0, ln2, 7.0, 1.0, 2.0, 3.0]);
    let mask = F(&[2, 3], &[0.0, ln2, inf, inf, inf, inf]);
    let y = run(Softmax::new(2.0), &[x, mask]);
    // exp(0) : exp(2 ln 2 + ln 2) is 1 : 8.
    close(&y, &[1.0 / 9.0, 8.0 / 9.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn elementwise_operations_follow_their_formulas() {
    let kind = BinaryKind::Add;
    let a = || F(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    close(
        &run(Binary { kind }, &[a(), F(&[2], &[10.0, 20.0])]),
        &[11.0, 22.0, 13.0, 24.0],
    );
    let kind = BinaryKind::Sub;
    close(
        &run(Binary { kind }, &[a(), F(&[1], &[0.5])]),
        &[0.5, 1.5, 2.5, 3.5],
    );
    let kind = BinaryKind::Div;
    close(
        &run(Binary { kind }, &[a(), F(&[2], &[2.0, -4.0])]),
        &[0.5, -0.5, 1.5, -1.0],
    );
    let kind = BinaryKind::Mul;
    close(
        &run(Binary { kind }, &[a(), F(&[2, 1], &[2.0, 3.0])]),
        &[2.0, 4.0, 9.0, 12.0],
    );
    close(
        &run(Scale { scale: -0.5 }, &[a()]),
        &[-0.5, -1.0, -1.5, -2.0],
    );
    let kind = GluKind::Swiglu;
    let y = run(
        Glu { kind },
        &[F(&[2], &[0.0, 3f64.ln()]), F(&[2], &[5.0, 4.0])],
    );
    // silu(ln 3) is ln 3 / (1 + 1/3).
    close(&y, &[0.0, 3.0 * 3f64.ln()]);
    let gate = || F(&[2], &[-2.0, 1.0]);
    let kind = GluKind::Geglu;
    let y = run(Glu { kind }, &[gate(), F(&[2], &[10.0, 2.0])]);
    close(&y, &[-0.45500263896358417, 1.6826894921370859]);
    let kind = GluKind::Reglu;
    let y = run(Glu { kind }, &[gate(), F(&[2], &[10.0, 2.0])]);
    close(&y, &[0.0, 2.0]);
    let dtype = DType::BF16;
    close(
        &run(Copy { dtype }, &[F(&[2], &[1.0 + 1.0 / 256.0, -0.1])]),
        &[1.0, -0.10009765625],
    );
}

#[test]
fn unary_operations_follow_their_formulas() {
    let x = [-2.0, 0.0, 1.0];
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    let phi = 0.841344746068543; // Phi(1)
    let tanh_form = 0.841191990608277; // (1 + tanh(sqrt(2 / pi) * 1.044715)) / 2
    for (kind, expected) in [
        (UnaryKind::Neg, [2.0, 0.0, -1.0]),
        (UnaryKind::Abs, [2.0, 0.0, 1.0]),
        (UnaryKind::Sqr, [4.0, 0.0, 1.0]),
        (UnaryKind::Exp, [(-2f64).exp(), 1.0, 1f64.exp()]),
        (UnaryKind::Sin, [(-2f64).sin(), 0.0, 1f64.sin()]),
        (UnaryKind::Cos, [2f64.cos(), 1.0, 1f64.cos()]),
        (UnaryKind::Tanh, [-(2f64.tanh()), 0.0, 1f64.tanh()]),
        (UnaryKind::Sigmoid, [sigmoid(-2.0), 0.5, sigmoid(1.0)]),
        (UnaryKind::Silu, [-2.0 * sigmoid(-2.0), 0.0, sigmoid(1.0)]),
        (UnaryKind::Gelu, [-0.045500263896358, 0.0, phi]),
        (UnaryKind::GeluTanh, [-0.045402305912225, 0.0, tanh_form]),
        (
            UnaryKind::GeluQuick,
            [-2.0 * sigmoid(-3.404), 0.0, sigmoid(1.702)],
        ),
        (UnaryKind::Relu, [0.0, 0.0, 1.0]),
        (UnaryKind::ReluSqr, [0.0, 0.0, 1.0]),
        (UnaryKind::LeakyRelu { slope: 0.25 }, [-0.5, 0.0, 1.0]),
        (
            UnaryKind::Softplus,
            [0.126928011042973, 2f64.ln(), 1.313261687518223],
        ),
        (
            UnaryKind::Clamp {
                min: -1.0,
                max: 0.5,
            },
            [-1.0, 0.0, 0.5],
        ),
    ] {
        close(&run(Unary { kind }, &[F(&[3], &x)]), &expected);
    }
    let positive = || F(&[2], &[1.0, 16.0]);
    let kind = UnaryKind::Sqrt;
    close(&run(Unary { kind }, &[positive()]), &[1.0, 4.0]);
    let kind = UnaryKind::Log;
    close(&run(Unary { kind }, &[positive()]), &[0.0, 16f64.ln()]);
}

#[test]
fn progressions_and_embeddings_follow_their_formulas() {
    let arange = |start, step, n, dtype| Arange {
        start,
        step,
        n,
        dtype,
    };
    close(
        &run(arange(1.5, -0.5, 4, DType::F32), &[]),
        &[1.5, 1.0, 0.5, 0.0],
    );
    let mut graph = Graph::new();
    graph.arange(-7.0, 3.0, 3, DType::I32).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &[], &[], Activations::Exact).unwrap();
    assert_eq!(output.data.indices().unwrap(), [-7, -4, -1]);

    // Frequencies 1 and 1/100, then 1 and 1/10 (nothing is taken from the two steps).
    let op = TimestepEmbedding {
        dim: 5,
        max_period: 100.0,
        ..TimestepEmbedding::default()
    };
    let t = || F(&[1], &[3.0]);
    let (a, b) = (3f64, 0.03f64);
    close(&run(op, &[t()]), &[a.sin(), b.sin(), a.cos(), b.cos(), 0.0]);
    let op = TimestepEmbedding {
        dim: 4,
        flip_sin_to_cos: true,
        downscale_freq_shift: 0.0,
        scale: 2.0,
        ..op
    };
    let (a, b) = (6f64, 0.6f64);
    close(&run(op, &[t()]), &[a.cos(), b.cos(), a.sin(), b.sin()]);
    close(
        &run(op, &[I(&[1], &[3])]),
        &[a.cos(), b.cos(), a.sin(), b.sin()],
    );
}

/// The integers that an operation gives.
fn indices(op: impl Into<Op>, x: Of<'_>) -> Vec<i64> {
    let mut graph = Graph::new();
    let (ids, data) = declare(&mut graph, &[x]);
    graph.apply(op.into(), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &data, &[], Activations::Exact).unwrap();
    assert_eq!(output.data.dims(), &**node.output().dims());
    output.data.indices().unwrap().to_vec()
}

#[test]
fn concat_repeat_and_pad_place_elements() {
    let x = || F(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let y = || F(&[2, 1], &[5.0, 6.0]);
    let along_rows = run(Concat { dim: 1 }, &[x(), y(), y()]);
    close(&along_rows, &[1.0, 2.0, 5.0, 5.0, 3.0, 4.0, 6.0, 6.0]);
    let across = run(Concat { dim: 0 }, &[x(), F(&[1, 2], &[7.0, 8.0])]);
    close(&across, &[1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
    let counts = Dims::new(&[1, 2]).unwrap();
    close(
        &run(Repeat { counts }, &[x()]),
        &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0],
    );
    let pad = Pad {
        before: Dims::new(&[1, 0]).unwrap(),
        after: Dims::new(&[0, 1]).unwrap(),
        value: 9.0,
    };
    let padded = [9.0, 9.0, 9.0, 1.0, 2.0, 9.0, 3.0, 4.0, 9.0];
    close(&run(pad, &[x()]), &padded);
    let ints = I(&[1, 2], &[70_000_001, -3]);
    let padded = indices(pad, ints);
    assert_eq!(padded, [9, 9, 9, 70_000_001, -3, 9]);
}

#[test]
fn reductions_go_along_the_last_dimension() {
    let x = || F(&[2, 3], &[1.0, 2.0, 6.0, -1.0, 0.5, 0.5]);
    let kind = ReduceKind::Sum;
    close(&run(Reduce { kind }, &[x()]), &[9.0, 0.0]);
    let kind = ReduceKind::Mean;
    close(&run(Reduce { kind }, &[x()]), &[3.0, 0.0]);
}

#[test]
fn orders_are_stable_and_put_nan_above_all_numbers() {
    let nan = f64::NAN;
    let values = [1.0, 3.0, 3.0, -0.0, nan, f64::INFINITY, nan, 0.0];
    let x = || F(&[2, 4], &values);
    assert_eq!(indices(Argmax, x()), [1, 0]);
    let sort = |order, k| indices(Argsort { order, k }, x());
    assert_eq!(sort(SortOrder::Ascending, None), [3, 0, 1, 2, 3, 1, 0, 2],);
    assert_eq!(sort(SortOrder::Descending, None), [1, 2, 0, 3, 0, 2, 1, 3],);
    assert_eq!(sort(SortOrder::Descending, Some(2)), [1, 2, 0, 2]);
    let zeros = F(&[3], &[0.0, -0.0, 0.0]);
    let order = SortOrder::Descending;
    assert_eq!(indices(Argsort { order, k: None }, zeros), [0, 1, 2]);
}

/// Attention of one query of width 1 over rows with keys 0, so that all scores are equal.
fn mean_of_rows(attributes: Attention, rest: &[Of<'_>], scalars: &[i32]) -> Vec<f64> {
    let mut graph = Graph::new();
    let mut operands = vec![
        F(&[1, 1, 1, 1], &[1.0]),
        F(&[1, 4, 1, 1], &[0.0; 4]),
        F(&[1, 4, 1, 1], &[1.0, 2.0, 4.0, 8.0]),
    ];
    operands.extend(rest.iter().map(|operand| match operand {
        F(dims, values) => F(dims, values),
        I(dims, values) => I(dims, values),
    }));
    let (ids, data) = declare(&mut graph, &operands);
    let kv_len = scalars.first().map(|_| graph.scalar("kv_len", 4).unwrap());
    let attributes = Attention {
        kv_len,
        ..attributes
    };
    graph.apply(attributes.into(), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &data, scalars, Activations::Exact).unwrap();
    output.data.values().unwrap().to_vec()
}

#[test]
fn attention_sees_the_rows_that_its_attributes_leave() {
    let all = Attention::new(1.0);
    let causal = Attention {
        causal: true,
        ..all
    };
    let window = |window, attributes| Attention {
        window: Some(window),
        ..attributes
    };
    close(&mean_of_rows(all, &[], &[]), &[15.0 / 4.0]);
    close(&mean_of_rows(all, &[], &[3]), &[7.0 / 3.0]);
    close(&mean_of_rows(all, &[], &[0]), &[0.0]);
    close(&mean_of_rows(causal, &[I(&[1], &[2])], &[]), &[7.0 / 3.0]);
    close(&mean_of_rows(causal, &[I(&[1], &[2])], &[2]), &[1.5]);
    close(&mean_of_rows(causal, &[I(&[1], &[-1])], &[]), &[0.0]);
    close(
        &mean_of_rows(window(2, causal), &[I(&[1], &[2])], &[]),
        &[3.0],
    );
    close(
        &mean_of_rows(window(1, causal), &[I(&[1], &[3])], &[]),
        &[8.0],
    );
    close(
        &mean_of_rows(window(2, all), &[I(&[1], &[2])], &[]),
        &[14.0 / 3.0],
    );
    close(
        &mean_of_rows(window(2, causal), &[I(&[1], &[9])], &[]),
        &[0.0],
    );
}

#[test]
fn masks_and_sinks_join_the_softmax() {
    let inf = f64::NEG_INFINITY;
    let (all, ln2) = (Attention::new(1.0), 2f64.ln());
    let masked = Attention { mask: true, ..all };
    let sunk = Attention { sinks: true, ..all };
    fn mask(values: &[f64]) -> Of<'_> {
        F(&[1, 4], values)
    }
    close(
        &mean_of_rows(masked, &[mask(&[0.0, ln2, inf, inf])], &[]),
        &[5.0 / 3.0],
    );
    close(&mean_of_rows(masked, &[mask(&[inf; 4])], &[]), &[0.0]);
    close(
        &mean_of_rows(sunk, &[F(&[1], &[4f64.ln()])], &[]),
        &[15.0 / 8.0],
    );
    close(&mean_of_rows(sunk, &[F(&[1], &[4f64.ln()])], &[0]), &[0.0]);
    // Minus infinity leaves a sink of no weight.
    close(&mean_of_rows(sunk, &[F(&[1], &[inf])], &[]), &[15.0 / 4.0]);
}

#[test]
fn scores_are_scaled_and_capped_before_the_softmax() {
    let q = || F(&[1, 1, 1, 2], &[1.0, 2.0]);
    let k = || F(&[1, 2, 1, 2], &[0.0, 0.0, 1.0, 1.0]);
    let v = || F(&[1, 2, 1, 3], &[0.0, 0.0, 0.0, 1.0, 2.0, -1.0]);
    let sigmoid = |s: f64| 1.0 / (1.0 + (-s).exp());
    let p = sigmoid(0.5 * 3.0);
    close(
        &run(Attention::new(0.5), &[q(), k(), v()]),
        &[p, 2.0 * p, -p],
    );
    let capped = Attention {
        soft_cap: Some(2.0),
        ..Attention::new(0.5)
    };
    let p = sigmoid(2.0 * (0.5 * 3.0 / 2.0f64).tanh());
    close(&run(capped, &[q(), k(), v()]), &[p, 2.0 * p, -p]);
}

#[test]
fn consecutive_heads_share_keys_and_values() {
    // Four heads over two: the values of a single row show which head was taken.
    let q = F(&[1, 1, 4, 1], &[1.0; 4]);
    let k = F(&[1, 1, 2, 1], &[0.0; 2]);
    let v = F(&[1, 1, 2, 1], &[5.0, 7.0]);
    close(&run(Attention::new(1.0), &[q, k, v]), &[5.0, 5.0, 7.0, 7.0]);
}

#[test]
fn rope_apply_multiplies_by_each_matrix_and_puts_heads_first() {
    // One batch, two tokens, two heads, one pair.
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let table = [1.0, 10.0, 100.0, 1000.0, 0.0, -1.0, 1.0, 0.0];
    for pairing in [Pairing::Normal, Pairing::Neox] {
        let y = run(
            RopeApply { pairing },
            &[F(&[1, 2, 2, 2], &x), F(&[2, 1, 2, 2], &table)],
        );
        close(&y, &[21.0, 2100.0, -6.0, 5.0, 43.0, 4300.0, -8.0, 7.0]);
    }
    // Two pairs: neighbours, or halves.
    let (x, matrices) = (
        F(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]),
        [0.0, 1.0, 1.0, 0.0, 2.0, 0.0, 0.0, 3.0],
    );
    let table = F(&[1, 2, 2, 2], &matrices);
    let pairing = Pairing::Normal;
    close(
        &run(RopeApply { pairing }, &[x, table]),
        &[2.0, 1.0, 6.0, 12.0],
    );
    let x = F(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let table = F(&[1, 2, 2, 2], &matrices);
    let pairing = Pairing::Neox;
    close(
        &run(RopeApply { pairing }, &[x, table]),
        &[3.0, 4.0, 1.0, 12.0],
    );
}

#[test]
fn layer_norm_centers_scales_and_shifts() {
    // Means 2 and 0, variances 1 and 8.
    let x = F(&[2, 2], &[1.0, 3.0, 8f64.sqrt(), -(8f64.sqrt())]);
    let (weight, bias) = (F(&[2], &[2.0, 3.0]), F(&[2], &[10.0, 20.0]));
    let y = run(LayerNorm { eps: 0.0 }, &[x, weight, bias]);
    close(&y, &[8.0, 23.0, 12.0, 17.0]);
    let y = run(LayerNorm { eps: 3.0 }, &[F(&[1, 2], &[1.0, 3.0])]);
    close(&y, &[-0.5, 0.5]);
}

#[test]
fn group_norm_takes_its_moments_from_consecutive_channels_of_one_batch() {
    // Two batches of four channels of one element, in groups of two.
    let x = F(&[2, 4, 1], &[1.0, 3.0, 0.0, 8.0, -1.0, -5.0, 6.0, 4.0]);
    let (weight, bias) = (
        F(&[4], &[1.0, 2.0, 3.0, 4.0]),
        F(&[4], &[0.0, 0.0, 0.0, 100.0]),
    );
    let (groups, eps) = (2, 0.0);
    let y = run(GroupNorm { groups, eps }, &[x, weight, bias]);
    close(&y, &[-1.0, 2.0, -3.0, 104.0, 1.0, -2.0, 3.0, 96.0]);
}

#[test]
fn l2_norm_gives_length_one_unless_the_row_is_shorter_than_eps() {
    let x = F(&[3, 2], &[3.0, 4.0, 0.0, 0.0, 0.03, 0.04]);
    let y = run(L2Norm { eps: 0.1f32 }, &[x]);
    let eps = f64::from(0.1f32);
    close(&y, &[0.6, 0.8, 0.0, 0.0, 0.03 / eps, 0.04 / eps]);
}

#[test]
fn alibi_slopes_weigh_the_mask_by_head() {
    // Two heads: slopes 2^-4 and 2^-8.
    let mask = F(&[1, 2], &[0.0, -256.0]);
    let op = Softmax {
        scale: 1.0,
        max_bias: 8.0,
    };
    let y = run(op, &[F(&[2, 1, 2], &[0.0; 4]), mask]);
    let second = |bias: f64| bias.exp() / (1.0 + bias.exp());
    close(
        &y,
        &[second(16.0), second(-16.0), second(1.0), second(-1.0)],
    );
}

#[test]
fn wkv7_decays_removes_and_adds_before_it_reads() {
    // One token, one head: S diag(w) = [[0.5, 0.5], [1.5, 1]], S a = [2, 4].
    let state = F(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let vector = |values| F(&[1, 1, 2], values);
    let operands = [
        vector(&[1.0, 10.0]),
        vector(&[0.5, 0.25]),
        vector(&[1.0, -1.0]),
        vector(&[3.0, 5.0]),
        vector(&[0.0, 1.0]),
        vector(&[0.0, 100.0]),
        state,
    ];
    let mut graph = Graph::new();
    let (ids, data) = declare(&mut graph, &operands);
    graph.apply(Op::from(Wkv7 { n_valid: None }), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    let output = run_node(node, &data, &[], Activations::Exact).unwrap();
    assert_eq!(output.updates.len(), node.updates().count());
    let state = output.updates[0].values().unwrap();
    close(state, &[3.5, 197.5, 6.5, 396.0]);
    close(output.data.values().unwrap(), &[1978.5, 3966.5]);
}

#[test]
fn token_shift_starts_with_the_state_and_leaves_the_last_valid_row() {
    let operands = [
        F(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        F(&[2], &[-1.0, -2.0]),
    ];
    let mut graph = Graph::new();
    let (ids, data) = declare(&mut graph, &operands);
    let n_valid = Some(graph.scalar("n_valid", 3).unwrap());
    graph.apply(Op::from(TokenShift { n_valid }), &ids).unwrap();
    let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
    for (valid, y, state) in [
        (3, [-1.0, -2.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0]),
        (2, [-1.0, -2.0, 1.0, 2.0, 0.0, 0.0], [3.0, 4.0]),
        (0, [0.0; 6], [-1.0, -2.0]),
    ] {
        let output = run_node(node, &data, &[valid], Activations::Exact).unwrap();
        close(output.data.values().unwrap(), &y);
        close(output.updates[0].values().unwrap(), &state);
    }
}
