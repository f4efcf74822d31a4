//! Arbitrary graphs.

use kovar_core::ops::{
    Attention, Binary, BinaryKind, LayerNorm, Op, Pairing, RmsNorm, Rope, Scale, Unary, UnaryKind,
};
use kovar_core::{DType, Graph, ValueId};

const SIDE: usize = 4;

/// Builds a graph from arbitrary choices. What the graph refuses is skipped, so that every choice
/// gives a legal graph; every temporary is written whole before a part of it is.
pub fn build(choices: &[(u8, u8, u8)]) -> Graph {
    let mut graph = Graph::new();
    let square = [SIDE, SIDE];
    let mut values: Vec<ValueId> = vec![
        graph.input("a", DType::F32, &square).unwrap(),
        graph.input("b", DType::F32, &square).unwrap(),
        graph.weight("w", DType::F32, &square).unwrap(),
        graph.weight("v", DType::F32, &[SIDE]).unwrap(),
        graph.state("s", DType::F32, &square).unwrap(),
        graph.state("t", DType::F32, &square).unwrap(),
        graph.state("shift", DType::F32, &[SIDE]).unwrap(),
        graph.state("wkv", DType::F32, &[1, SIDE, SIDE]).unwrap(),
    ];
    let (shift, wkv) = (values[6], values[7]);
    let ids = graph.input("ids", DType::I32, &[SIDE]).unwrap();
    let rows = graph.scalar("rows", SIDE as i32).unwrap();
    let table = graph.input("table", DType::F32, &[SIDE, 1, 2]).unwrap();
    let two_ids = graph.slice(ids, 0, 1..3).unwrap();
    let binary = |kind| Op::from(Binary { kind });
    let relu = || {
        let kind = UnaryKind::Relu;
        Op::from(Unary { kind })
    };
    for &(action, i, j) in choices {
        let pick = |i: u8| values[usize::from(i) % values.len()];
        let (x, y) = (pick(i), pick(j));
        // Often the last result, so that there are nodes to fuse.
        let x = match action / 27 % 2 {
            0 => values.last().copied().unwrap_or(x),
            _ => x,
        };
        let half = usize::from(j) % 2;
        let added = match action % 28 {
            0 => graph.add(x, y),
            1 => graph.mul(x, y),
            2 => graph.sub(x, y),
            3 => graph.scale(x, 0.5),
            4 => graph.apply_in_place(binary(BinaryKind::Add), &[x, y]),
            5 => graph.apply_in_place(binary(BinaryKind::Mul), &[x, y]),
            6 => graph.apply_in_place(Op::from(Scale { scale: 0.5 }), &[x]),
            7 => graph.copy_into(x, y),
            8 => graph.slice(x, 0, half..2 + half),
            9 => graph.slice(x, 1, half..2 + half),
            10 => graph.permute(x, &[1, 0]),
            11 => graph.slice(x, 0, half..half),
            12 => graph.reshape(x, &[2, 2 * SIDE]),
            13 => graph.set_rows(x, y, two_ids),
            14 => graph.set_rows(x, y, ids),
            15 => graph.get_rows(x, ids),
            16 => graph.matmul(x, y),
            17 => graph.concat(&[x, y], half),
            18 => graph.token_shift(x, shift, None),
            19 => {
                let split = |graph: &mut Graph, value| graph.reshape(value, &[SIDE, 1, SIDE]);
                let operands = split(&mut graph, x).and_then(|x| Ok((x, split(&mut graph, y)?)));
                operands.and_then(|(x, y)| {
                    let y = graph.wkv7([x, y, x, y, x, y], wkv, None)?;
                    graph.reshape(y, &[SIDE, SIDE])
                })
            }
            20 => graph.softmax(x, None, 0.5),
            21 => graph.apply(Op::from(RmsNorm { eps: 1.0 }), &[x]),
            22 => graph.apply_in_place(Op::from(LayerNorm { eps: 1.0 }), &[x]),
            23 => graph.apply_in_place(relu(), &[x]),
            24 => graph.apply(relu(), &[x]),
            25 => {
                let x = graph.reshape(x, &[SIDE, 1, SIDE]);
                let cache = graph.reshape(y, &[SIDE, 1, SIDE]);
                let turned = match half {
                    0 => x.and_then(|x| {
                        let pairing = Pairing::Neox;
                        graph.apply(Op::from(Rope { pairing }), &[x, table])
                    }),
                    _ => x.and_then(|x| graph.rope_in_place(x, table, Pairing::Normal)),
                };
                let kept = cache.and_then(|cache| graph.set_rows(cache, turned?, ids));
                kept.and_then(|kept| graph.reshape(kept, &[SIDE, SIDE]))
            }
            // Reads a part of its keys and values, which differs from run to run.
            26 => {
                let split = |graph: &mut Graph, value| graph.reshape(value, &[1, SIDE, 1, SIDE]);
                let operands = split(&mut graph, x).and_then(|x| Ok((x, split(&mut graph, y)?)));
                let attributes = Attention {
                    kv_len: Some(rows),
                    ..Attention::new(0.5)
                };
                operands.and_then(|(x, y)| {
                    let z = graph.attention(attributes, y, x, x, &[])?;
                    graph.reshape(z, &[SIDE, SIDE])
                })
            }
            _ => graph.l2_norm(x, 1e-6),
        };
        values.extend(added);
    }
    for (n, &value) in values.iter().enumerate() {
        if choices.get(n).is_some_and(|(_, _, choice)| choice % 4 == 0) {
            let _ = graph.set_output(value, &format!("y{n}"));
        }
    }
    let last = values.last().copied().unwrap();
    let _ = graph.set_output(last, "last");
    graph
}
