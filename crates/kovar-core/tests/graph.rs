//! Shape and alias inference: what builders accept, and what their errors name.

use kovar_core::error::GraphError;
use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Pairing};
use kovar_core::{DType, Graph, StorageKind};

fn add() -> Op {
    let kind = BinaryKind::Add;
    Op::from(Binary { kind })
}

#[test]
fn a_result_lies_on_a_storage_of_its_own_and_a_view_on_its_source() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F32, &[4, 6]).unwrap();
    let y = g.scale(x, 2.0).unwrap();
    let view = g.slice(y, 1, 2..5).unwrap();
    assert_ne!(g.value(x).unwrap().storage, g.value(y).unwrap().storage);
    assert_eq!(g.value(view).unwrap().storage, g.value(y).unwrap().storage);
    assert_eq!(g.value(view).unwrap().byte_span(), 8..92);
    assert_eq!(g.storage_of(y).unwrap().kind, StorageKind::Temp);
}

#[test]
fn in_place_needs_the_same_window() {
    let mut g = Graph::new();
    let x = g.temp("x", DType::F32, &[8, 4]).unwrap();
    let (low, high) = (g.slice(x, 0, 0..4).unwrap(), g.slice(x, 0, 4..8).unwrap());
    let shifted = g.slice(x, 0, 1..5).unwrap();
    assert_eq!(g.apply_into(add(), &[low, high], low).unwrap(), low);
    assert_eq!(g.apply_into(add(), &[high, high], low).unwrap(), low);
    let error = g.apply_into(add(), &[low, high], shifted).unwrap_err();
    assert!(
        matches!(
            error,
            GraphError::Overlap {
                op: "add",
                operand: "a",
                in_place: true,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_operation_that_cannot_work_in_place_refuses_to() {
    let mut g = Graph::new();
    let x = g.temp("x", DType::F32, &[4, 4]).unwrap();
    let w = g.weight("w", DType::F32, &[4, 4]).unwrap();
    let matmul = Op::from(kovar_core::ops::Matmul::default());
    let error = g.apply_into(matmul, &[w, x], x).unwrap_err();
    assert!(
        matches!(
            error,
            GraphError::Overlap {
                operand: "x",
                in_place: false,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn weights_inputs_and_broadcasts_are_not_written() {
    let mut g = Graph::new();
    let x = g.temp("x", DType::F32, &[1, 4]).unwrap();
    let wide = g.broadcast_to(x, &[3, 4]).unwrap();
    let y = g.temp("y", DType::F32, &[3, 4]).unwrap();
    for (name, destination) in [
        ("w", g.weight("w", DType::F32, &[3, 4]).unwrap()),
        ("in", g.input("in", DType::F32, &[3, 4]).unwrap()),
        ("x", wide),
    ] {
        match g.apply_into(add(), &[y, y], destination).unwrap_err() {
            GraphError::NotWritable { storage, .. } => assert_eq!(storage, name),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn errors_name_the_operand_and_both_shapes() {
    let mut g = Graph::new();
    let w = g.weight("w", DType::Q4_0, &[8, 64]).unwrap();
    let x = g.input("x", DType::F32, &[3, 32]).unwrap();
    let ids = g.input("ids", DType::I32, &[3]).unwrap();
    assert_eq!(
        g.matmul(w, x).unwrap_err().to_string(),
        "matmul: operand `x` has dims [3, 32], `w` has [8, 64]: the last dims must agree"
    );
    assert_eq!(
        g.matmul(w, ids).unwrap_err().to_string(),
        "matmul: operand `x` is I32, the operation takes F32, F16, BF16"
    );
    assert_eq!(
        g.add(x, w).unwrap_err().to_string(),
        "add: operand `b` is Q4_0, the operation takes F32, F16, BF16"
    );
    let error = g.apply(add(), &[x]).unwrap_err();
    assert_eq!(error.to_string(), "add takes 2 operands, 1 were given");
    assert!(g.nodes().is_empty());
}

#[test]
fn views_cut_no_blocks() {
    let mut g = Graph::new();
    let w = g.weight("w", DType::Q8_0, &[4, 96]).unwrap();
    let tail = g.slice(w, 1, 32..96).unwrap();
    assert_eq!(g.value(tail).unwrap().byte_offset(), 34);
    assert_eq!(g.value(tail).unwrap().byte_span(), 34..4 * 3 * 34);
    assert!(g.slice(w, 1, 16..96).is_err());
    assert!(g.permute(w, &[1, 0]).is_err());
    assert!(g.reshape(w, &[8, 48]).is_err());
    assert!(g.reshape(w, &[2, 192]).is_ok());
    assert!(g.weight("partial", DType::Q8_0, &[4, 33]).is_err());
}

#[test]
fn tensors_too_large_to_address_are_refused() {
    let mut g = Graph::new();
    for dims in [&[usize::MAX, 2][..], &[1 << 40, 1 << 40], &[1; 7]] {
        assert!(matches!(
            g.input("x", DType::F32, dims),
            Err(GraphError::Tensor { .. })
        ));
    }
    assert!(
        g.input("x", DType::F32, &[0, 3]).is_ok(),
        "a refused name stays free"
    );
}

#[test]
fn set_rows_writes_into_the_state_it_is_given() {
    let mut g = Graph::new();
    let cache = g.state("cache", DType::Q8_0, &[16, 2, 32]).unwrap();
    let x = g.input("x", DType::F32, &[3, 2, 32]).unwrap();
    let ids = g.input("ids", DType::I32, &[3]).unwrap();
    assert_eq!(g.set_rows(cache, x, ids).unwrap(), cache);
    assert!(g.nodes()[0].op.writes_partially());
    let fresh = g
        .apply(Op::from(kovar_core::ops::SetRows), &[x, ids])
        .unwrap_err();
    assert_eq!(fresh, GraphError::NeedsDestination { op: "set_rows" });
    let narrow = g.state("narrow", DType::F32, &[16, 64]).unwrap();
    assert!(g.set_rows(narrow, x, ids).is_err());
}

#[test]
fn attention_takes_the_operands_that_its_attributes_ask_for() {
    let mut g = Graph::new();
    let q = g.input("q", DType::F32, &[1, 5, 6, 8]).unwrap();
    let k = g.state("k", DType::F16, &[1, 32, 2, 8]).unwrap();
    let positions = g.input("positions", DType::I32, &[5]).unwrap();
    let mask = g.input("mask", DType::F32, &[5, 32]).unwrap();
    let mut attention = Attention::new(0.5);
    attention.causal = true;
    let y = g.attention(attention, q, k, k, &[positions]).unwrap();
    assert_eq!(g.value(y).unwrap().dims()[..], [1, 5, 6, 8]);
    assert!(g.attention(attention, q, k, k, &[]).is_err());
    attention.mask = true;
    assert!(g.attention(attention, q, k, k, &[positions, mask]).is_ok());
    assert!(g.attention(attention, q, k, k, &[mask, positions]).is_err());
    let error = g
        .attention(Attention::new(f32::NAN), q, k, k, &[])
        .unwrap_err();
    assert!(matches!(
        error,
        GraphError::Attribute {
            attribute: "scale",
            ..
        }
    ));
}

#[test]
fn rope_checks_the_table_against_tokens_and_head() {
    let mut g = Graph::new();
    let x = g.temp("x", DType::F32, &[5, 2, 8]).unwrap();
    let table = g.input("table", DType::F32, &[5, 4, 2]).unwrap();
    let short = g.input("short", DType::F32, &[4, 4, 2]).unwrap();
    let wide = g.input("wide", DType::F32, &[5, 5, 2]).unwrap();
    assert_eq!(g.rope_in_place(x, table, Pairing::Neox).unwrap(), x);
    assert!(g.rope_in_place(x, short, Pairing::Neox).is_err());
    assert!(g.rope_in_place(x, wide, Pairing::Neox).is_err());
}

#[test]
fn an_output_is_a_temporary_under_a_name_of_its_own() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F32, &[4]).unwrap();
    let y = g.scale(x, 2.0).unwrap();
    let z = g.scale(x, 3.0).unwrap();
    assert!(matches!(
        g.set_output(x, "x"),
        Err(GraphError::NotAnOutput { .. })
    ));
    g.set_output(y, "y").unwrap();
    assert!(matches!(
        g.set_output(z, "y"),
        Err(GraphError::DuplicateName { .. })
    ));
    let id = g.storage_named(StorageKind::Output, "y").unwrap();
    assert_eq!(g.value(y).unwrap().storage, id);
}

#[test]
fn costs_count_distinct_elements_once() {
    let mut g = Graph::new();
    let w = g.weight("w", DType::Q4_0, &[8, 64]).unwrap();
    let x = g.input("x", DType::F32, &[3, 64]).unwrap();
    g.matmul(w, x).unwrap();
    let node = g.node(g.node_ids().next().unwrap()).unwrap();
    let cost = node.cost();
    assert_eq!(cost.flops, 2 * 3 * 8 * 64);
    assert_eq!(cost.bytes_read, 8 * 2 * 18 + 3 * 64 * 4);
    assert_eq!(cost.bytes_written, 3 * 8 * 4);
}

#[test]
fn rope_apply_works_in_place_on_the_swapped_window_only() {
    let mut g = Graph::new();
    let x = g.temp("x", DType::F32, &[2, 3, 3, 8]).unwrap();
    let table = g.input("table", DType::F32, &[3, 4, 2, 2]).unwrap();
    let y = g.rope_apply_in_place(x, table, Pairing::Neox).unwrap();
    let swapped = g.value(x).unwrap().layout.permute(&[0, 2, 1, 3]);
    assert_eq!(Some(g.value(y).unwrap().layout), swapped);
    let pairing = Pairing::Neox;
    let op = Op::from(kovar_core::ops::RopeApply { pairing });
    let error = g.apply_into(op, &[x, table], x).unwrap_err();
    assert!(
        matches!(
            error,
            GraphError::Overlap {
                operand: "x",
                in_place: true,
                ..
            }
        ),
        "{error}"
    );
    let odd = g.temp("odd", DType::F32, &[2, 3, 3, 7]).unwrap();
    let error = g.rope_apply(odd, table, Pairing::Neox).unwrap_err();
    assert!(
        matches!(error, GraphError::OperandRank { operand: "x", .. }),
        "{error}"
    );
}

#[test]
fn an_updated_operand_is_written_and_overlaps_nothing_else() {
    let mut g = Graph::new();
    let vectors = g.temp("vectors", DType::F32, &[6, 3, 2, 4]).unwrap();
    let rwkvab = std::array::from_fn(|i| {
        let one = g.slice(vectors, 0, i..i + 1).unwrap();
        g.reshape(one, &[3, 2, 4]).unwrap()
    });
    let state = g.state("s", DType::F32, &[2, 4, 4]).unwrap();
    let y = g.wkv7(rwkvab, state, None).unwrap();
    let node = g.node(g.node_ids().next().unwrap()).unwrap();
    let of = |id| *g.value(id).unwrap();
    assert_eq!(node.updates().copied().collect::<Vec<_>>(), [of(state)]);
    assert_eq!(
        node.writes().copied().collect::<Vec<_>>(),
        [of(y), of(state)]
    );
    let cost = node.cost();
    assert_eq!(cost.bytes_written, 4 * (3 * 2 * 4 + 2 * 4 * 4));

    let fixed = g.weight("w", DType::F32, &[2, 4, 4]).unwrap();
    let error = g.wkv7(rwkvab, fixed, None).unwrap_err();
    assert!(matches!(error, GraphError::NotWritable { ref storage, .. } if storage == "w"));
    let one = g.state("one", DType::F32, &[1, 4, 4]).unwrap();
    let repeated = g.broadcast_to(one, &[2, 4, 4]).unwrap();
    let error = g.wkv7(rwkvab, repeated, None).unwrap_err();
    assert!(matches!(error, GraphError::NotWritable { ref storage, .. } if storage == "one"));

    let flat = g.reshape(vectors, &[144]).unwrap();
    let shared = g.slice(flat, 0, 112..144).unwrap();
    let shared = g.reshape(shared, &[2, 4, 4]).unwrap();
    let error = g.wkv7(rwkvab, shared, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wkv7: operand `state`, which is updated, overlaps `a` on storage `vectors`"
    );
    let whole = g.state("whole", DType::F32, &[2, 4, 4]).unwrap();
    let head = g.reshape(whole, &[32]).unwrap();
    let head = g.slice(head, 0, 0..24).unwrap();
    let head = g.reshape(head, &[3, 2, 4]).unwrap();
    let inputs: Vec<_> = rwkvab.into_iter().chain([whole]).collect();
    let op = Op::from(kovar_core::ops::Wkv7 { n_valid: None });
    let error = g.apply_into(op, &inputs, head).unwrap_err();
    assert!(
        matches!(
            error,
            GraphError::UpdateOverlap {
                other: "destination",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_scalar_that_no_run_could_give_is_refused() {
    let mut graph = Graph::new();
    let error = graph.scalar("a", -5).unwrap_err();
    assert!(matches!(error, GraphError::ScalarMax { max: -5, .. }));
    assert!(graph.scalars().is_empty());
    graph.scalar("a", 0).unwrap();
}

#[test]
fn a_broadcast_of_too_many_elements_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[1]).unwrap();
    let error = graph.broadcast_to(x, &[1 << 40, 1 << 40]).unwrap_err();
    assert!(matches!(error, GraphError::View { .. }));
}

#[test]
fn the_cost_of_a_huge_product_saturates() {
    let mut graph = Graph::new();
    let w = graph.input("w", DType::F32, &[1]).unwrap();
    let x = graph.input("x", DType::F32, &[1]).unwrap();
    let w = graph.broadcast_to(w, &[16, 1 << 58]).unwrap();
    let x = graph.broadcast_to(x, &[16, 1 << 58]).unwrap();
    graph.matmul(w, x).unwrap();
    let node = graph.node_ids().next().and_then(|id| graph.node(id));
    assert_eq!(node.unwrap().cost().flops, u64::MAX);
}
