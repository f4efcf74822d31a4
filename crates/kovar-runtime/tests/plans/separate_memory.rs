//! An arena that storages share gives what separate memory of each storage gives.

use kovar_core::{Graph, StorageKind};
use kovar_runtime::{Homes, Policy, compile};
use kovar_testkit::oracle::{Activations, run_node};
use kovar_testkit::simulated::SimulatedOptions;
use kovar_testkit::{read_value, write_value};
use proptest::prelude::*;

use crate::generator::build;
use crate::world::{Results, World, data, device};

/// The outputs and states after one run without the runtime, each storage in memory of its own.
/// Every byte of temporaries is `fill` at first.
fn interpreted(graph: &Graph, fill: u8) -> Results {
    let storages = graph.storages().iter();
    let mut memory: Vec<Vec<u8>> = storages
        .map(|storage| match storage.kind {
            StorageKind::Input => data(storage, 1),
            StorageKind::Weight => data(storage, 7),
            StorageKind::State => vec![0; storage.bytes],
            StorageKind::Temp | StorageKind::Output => vec![fill; storage.bytes],
        })
        .collect();
    let scalars: Vec<i32> = graph.scalars().iter().map(|scalar| scalar.max).collect();
    for node in graph.node_refs() {
        let inputs = node
            .inputs()
            .map(|value| read_value(value, &memory[value.storage.index()]));
        let inputs: Vec<_> = inputs.map(Result::unwrap).collect();
        let output = run_node(node, &inputs, &scalars, Activations::Exact).unwrap();
        let mut write = |value: &kovar_core::Value, data, written| {
            let bytes = &mut memory[value.storage.index()];
            write_value(value, data, written, bytes).unwrap();
        };
        write(node.output(), &output.data, output.written.as_deref());
        for (value, data) in node.updates().zip(&output.updates) {
            write(value, data, None);
        }
    }
    let storages = graph.storages().iter().zip(memory);
    storages
        .filter(|(s, _)| matches!(s.kind, StorageKind::Output | StorageKind::State))
        .map(|(storage, bytes)| (storage.name.clone(), bytes))
        .collect()
}

/// The same through the runtime.
fn run(graph: &Graph, reuse_memory: bool, max_buffer_bytes: usize) -> Results {
    let options = SimulatedOptions {
        max_buffer_bytes,
        ..SimulatedOptions::default()
    };
    let world = World::new(graph, vec![options], Homes::all_on(device(0)));
    let mut policy = Policy::default();
    policy.reuse_memory = reuse_memory;
    policy.check_plan = true;
    let plan = compile(graph, &world.session, &policy).unwrap();
    world.run(&plan, 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_arena_gives_what_separate_buffers_give(
        choices in prop::collection::vec(any::<(u8, u8, u8)>(), 1..60),
    ) {
        let graph = build(&choices);
        let expected = interpreted(&graph, 0xff);
        prop_assert_eq!(&interpreted(&graph, 0), &expected);
        let aligned = graph.storages().iter().map(|s| s.bytes.next_multiple_of(64));
        let largest = aligned.max().unwrap_or(0);
        for (reuse, max_buffer) in [(false, 1 << 20), (true, 1 << 20), (true, largest)] {
            let mut found = run(&graph, reuse, max_buffer);
            // The session has no states that no node touches.
            for (name, bytes) in &expected {
                found.entry(name.clone()).or_insert_with(|| bytes.clone());
            }
            prop_assert_eq!(&found, &expected);
        }
    }
}
