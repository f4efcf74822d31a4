//! Elementwise operations and row writes on 4-byte elements, and graphs run without the runtime.

use std::collections::HashMap;

use kovar_core::ops::{BinaryKind, Op};
use kovar_core::{DType, Graph, Layout, NodeRef, StorageKind, Value, ValueId};

pub type Element = [u8; 4];

/// The operations of [`results`].
pub const OPS: [&str; 5] = ["add", "mul", "scale", "copy", "set_rows"];

/// The positions of a layout's elements in row-major order.
pub fn positions(layout: &Layout) -> Vec<usize> {
    (0..layout.elements())
        .map(|mut i| {
            let mut at = layout.offset();
            for (size, stride) in layout.dims().iter().zip(layout.strides().iter()).rev() {
                at += i % size * stride;
                i /= size;
            }
            at
        })
        .collect()
}

/// What a node writes, as positions on its output's storage and elements.
pub fn results(node: NodeRef<'_>, load: impl Fn(&Value) -> Vec<Element>) -> Vec<(usize, Element)> {
    let output = node.output();
    let targets = positions(&output.layout);
    let floats = |i: usize| -> Vec<f32> {
        let mut value = *node.input(i).unwrap();
        value.layout = value.layout.broadcast_to(*output.dims()).unwrap();
        load(&value).into_iter().map(f32::from_le_bytes).collect()
    };
    let values: Vec<f32> = match node.op() {
        Op::Binary(binary) => {
            let pairs = floats(0).into_iter().zip(floats(1));
            match binary.kind {
                BinaryKind::Add => pairs.map(|(a, b)| a + b).collect(),
                BinaryKind::Mul => pairs.map(|(a, b)| a * b).collect(),
                other => panic!("unknown operation {other:?}"),
            }
        }
        Op::Scale(scale) => floats(0).iter().map(|a| a * scale.scale).collect(),
        Op::Copy(_) => {
            let elements = load(node.input(0).unwrap());
            return targets.into_iter().zip(elements).collect();
        }
        Op::SetRows(_) => {
            let rows = load(node.input(0).unwrap());
            let ids = load(node.input(1).unwrap());
            let row_len: usize = output.dims()[1..].iter().product();
            let n_rows = output.dims()[0];
            let ids = ids.into_iter().map(i32::from_le_bytes).enumerate();
            return ids
                .filter_map(|(i, id)| Some((i, usize::try_from(id).ok()?)))
                .filter(|&(_, id)| id < n_rows)
                .flat_map(|(i, id)| (0..row_len).map(move |e| (i * row_len + e, id * row_len + e)))
                .map(|(from, to)| (targets[to], rows[from]))
                .collect();
        }
        other => panic!("unknown operation {other:?}"),
    };
    let elements = values.into_iter().map(f32::to_le_bytes);
    targets.into_iter().zip(elements).collect()
}

/// All storages of a graph as they are after all nodes ran, each in memory of its own.
/// Every byte of temporaries is `fill` at first, states hold `state`.
pub fn interpret(
    graph: &Graph,
    inputs: &HashMap<String, Vec<f32>>,
    state: f32,
    fill: u8,
) -> Vec<Vec<u8>> {
    let mut memory: Vec<Vec<u8>> = graph
        .storages()
        .iter()
        .map(|storage| match storage.kind {
            StorageKind::Input | StorageKind::Weight => bytes(&inputs[&storage.name]),
            StorageKind::State => bytes(&vec![state; storage.bytes / 4]),
            StorageKind::Temp | StorageKind::Output => vec![fill; storage.bytes],
        })
        .collect();
    for id in graph.node_ids() {
        let node = graph.node(id).unwrap();
        let written = results(node, |value| {
            let storage = &memory[value.storage.index()];
            let at = positions(&value.layout).into_iter();
            at.map(|p| storage[p * 4..p * 4 + 4].try_into().unwrap())
                .collect()
        });
        let storage = &mut memory[node.output().storage.index()];
        for (at, element) in written {
            storage[at * 4..at * 4 + 4].copy_from_slice(&element);
        }
    }
    memory
}

pub fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|element| f32::from_le_bytes(element.try_into().unwrap()))
        .collect()
}

/// A graph with inputs `a` and `b` of `n` floats.
pub fn two_inputs(n: usize) -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[n]).unwrap();
    let b = graph.input("b", DType::F32, &[n]).unwrap();
    (graph, a, b)
}

/// A `wkv7` node over inputs that updates `state`, of one head of four elements.
pub fn recurrence(graph: &mut Graph, state: ValueId, tag: &str) -> ValueId {
    let rwkvab = ["r", "w", "k", "v", "a", "b"].map(|name| {
        let name = format!("{name}{tag}");
        graph.input(&name, DType::F32, &[2, 1, 4]).unwrap()
    });
    graph.wkv7(rwkvab, state, None).unwrap()
}
