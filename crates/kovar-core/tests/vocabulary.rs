//! What the operations on elements and indices accept, and what their errors name.

use kovar_core::error::GraphError;
use kovar_core::ops::{SortOrder, TimestepEmbedding, UnaryKind};
use kovar_core::{DType, Graph, ValueId};

fn dims(g: &Graph, id: ValueId) -> Vec<usize> {
    g.value(id).unwrap().dims().to_vec()
}

fn attribute_of(result: Result<ValueId, GraphError>) -> &'static str {
    match result.unwrap_err() {
        GraphError::Attribute { attribute, .. } => attribute,
        other => panic!("{other}"),
    }
}

#[test]
fn clamping_needs_bounds_in_order_and_a_slope_is_finite() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F16, &[4, 6]).unwrap();
    let open = UnaryKind::Clamp {
        min: f32::NEG_INFINITY,
        max: f32::INFINITY,
    };
    assert!(g.unary(x, open).is_ok());
    let crossed = UnaryKind::Clamp { min: 1.0, max: 0.5 };
    assert_eq!(attribute_of(g.unary(x, crossed)), "max");
    let nan = UnaryKind::Clamp {
        min: f32::NAN,
        max: 0.5,
    };
    assert_eq!(attribute_of(g.unary(x, nan)), "min");
    let slope = f32::INFINITY;
    let leaky = g.unary(x, UnaryKind::LeakyRelu { slope });
    assert_eq!(attribute_of(leaky), "slope");
    let ids = g.input("ids", DType::I32, &[4]).unwrap();
    assert!(matches!(
        g.unary(ids, UnaryKind::Silu),
        Err(GraphError::OperandDType { op: "silu", .. })
    ));
}

#[test]
fn concatenation_names_the_operand_that_does_not_fit() {
    let mut g = Graph::new();
    let a = g.input("a", DType::F32, &[2, 3]).unwrap();
    let b = g.input("b", DType::F32, &[2, 5]).unwrap();
    let half = g.input("half", DType::F16, &[2, 3]).unwrap();
    let y = g.concat(&[a, b, a], 1).unwrap();
    assert_eq!(dims(&g, y), [2, 11]);
    assert!(matches!(
        g.concat(&[a, b], 0),
        Err(GraphError::OperandDims {
            operand: "next",
            ..
        })
    ));
    let error = g.concat(&[a, a, a, half], 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "concat: operand `next` is F16, the operation takes F32"
    );
    assert_eq!(attribute_of(g.concat(&[a, b], 2)), "dim");
    assert!(matches!(g.concat(&[a], 0), Err(GraphError::Arity { .. })));
}

#[test]
fn sizes_that_overflow_are_refused() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F32, &[2, 3]).unwrap();
    assert!(g.repeat(x, &[usize::MAX, 1]).is_err());
    assert!(g.pad(x, &[usize::MAX, 0], &[usize::MAX, 1], 0.0).is_err());
    assert!(g.arange(0.0, 0.0, usize::MAX, DType::F32).is_err());
    assert!(g.repeat(x, &[1]).is_err());
    assert!(g.repeat(x, &[1; 7]).is_err());
    assert!(g.pad(x, &[1, 1], &[1], 0.0).is_err());
    let y = g.pad(x, &[1, 0], &[0, 4], 0.0).unwrap();
    assert_eq!(dims(&g, y), [3, 7]);
    let y = g.repeat(x, &[3, 2]).unwrap();
    assert_eq!(dims(&g, y), [6, 6]);
}

#[test]
fn integers_are_padded_with_integers() {
    let mut g = Graph::new();
    let x = g.input("x", DType::I32, &[2]).unwrap();
    assert!(g.pad(x, &[1], &[1], -1.0).is_ok());
    for value in [0.5, f32::NAN, f32::INFINITY, 2f32.powi(31)] {
        assert_eq!(attribute_of(g.pad(x, &[1], &[1], value)), "value");
    }
}

#[test]
fn reductions_keep_the_last_dimension_and_indices_drop_or_cut_it() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F16, &[2, 3, 8]).unwrap();
    let sum = g.sum(x).unwrap();
    assert_eq!(dims(&g, sum), [2, 3, 1]);
    assert_eq!(g.value(sum).unwrap().dtype, DType::F16);
    let argmax = g.argmax(x).unwrap();
    assert_eq!(dims(&g, argmax), [2, 3]);
    assert_eq!(g.value(argmax).unwrap().dtype, DType::I32);
    let sorted = g.argsort(x, SortOrder::Ascending).unwrap();
    assert_eq!(dims(&g, sorted), [2, 3, 8]);
    let top = g.top_k(x, 5).unwrap();
    assert_eq!(dims(&g, top), [2, 3, 5]);
    assert_eq!(attribute_of(g.top_k(x, 9)), "k");
    let empty = g.input("empty", DType::F32, &[2, 0]).unwrap();
    assert!(g.argmax(empty).is_err());
    assert!(g.sum(empty).is_ok());
    let one = g.input("one", DType::F32, &[]).unwrap();
    assert!(g.sum(one).is_err() && g.argmax(one).is_err());
}

#[test]
fn progressions_stay_within_their_dtype() {
    let mut g = Graph::new();
    let y = g.arange(-3.0, 2.0, 4, DType::I32).unwrap();
    assert_eq!(dims(&g, y), [4]);
    let max = f64::from(i32::MAX);
    assert!(g.arange(max - 2.0, 1.0, 3, DType::I32).is_ok());
    let beyond = g.arange(max - 2.0, 1.0, 4, DType::I32);
    assert_eq!(attribute_of(beyond), "the last element");
    assert_eq!(attribute_of(g.arange(0.5, 1.0, 4, DType::I32)), "start");
    assert_eq!(attribute_of(g.arange(0.0, 0.5, 4, DType::I32)), "step");
    assert!(matches!(
        g.arange(0.0, 1.0, 4, DType::F16),
        Err(GraphError::ResultDType { .. })
    ));
    assert_eq!(attribute_of(g.arange(0.0, f64::NAN, 1, DType::F32)), "step");
    let beyond = g.arange(0.0, 1e38, 9, DType::F32);
    assert_eq!(attribute_of(beyond), "the last element");
}

#[test]
fn timestep_embeddings_check_their_frequencies() {
    let mut g = Graph::new();
    let t = g.input("t", DType::F32, &[2]).unwrap();
    let op = TimestepEmbedding::default();
    let y = g.timestep_embedding(t, op).unwrap();
    assert_eq!(dims(&g, y), [2, 256]);
    let short = TimestepEmbedding { dim: 1, ..op };
    assert_eq!(attribute_of(g.timestep_embedding(t, short)), "dim");
    // One frequency and a shift of one would divide by 0.
    let shifted = TimestepEmbedding { dim: 3, ..op };
    let attribute = attribute_of(g.timestep_embedding(t, shifted));
    assert_eq!(attribute, "downscale_freq_shift");
    let max_period = 0.0;
    let period = TimestepEmbedding { max_period, ..op };
    assert_eq!(attribute_of(g.timestep_embedding(t, period)), "max_period");
    let wide = g.input("wide", DType::F32, &[1; 6]).unwrap();
    assert!(g.timestep_embedding(wide, op).is_err());
}
