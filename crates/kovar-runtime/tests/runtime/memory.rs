use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, Graph};
use kovar_runtime::liveness::{Lifetime, analyse};
use kovar_runtime::memory::{MemoryPlan, Request, lower_bound, pack, plan};
use kovar_runtime::placement::{Rules, place};
use kovar_runtime::segment::schedule;
use kovar_runtime::{CompileError, DeviceId, Homes};
use proptest::prelude::*;

use crate::interpreter::two_inputs;
use crate::sim::Sim;

fn planned(graph: &Graph, device: Sim, reuse: bool) -> Result<MemoryPlan, CompileError> {
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(device)];
    let liveness = analyse(graph)?;
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(graph, &liveness, &devices, &Rules::new(&homes))?;
    let schedule = schedule(graph, &liveness, &placement, None);
    plan(graph, &liveness, &placement, &schedule, &devices, reuse)
}

/// A chain of `n` nodes, each with a result of 16 floats of its own.
fn chain(n: usize) -> Graph {
    let (mut graph, mut x, _) = two_inputs(16);
    for _ in 0..n {
        x = graph.scale(x, 2.0).unwrap();
    }
    graph.set_output(x, "y").unwrap();
    graph
}

#[test]
fn a_chain_takes_two_buffers() {
    let memory = planned(&chain(20), Sim::new("a"), true).unwrap();
    assert_eq!(memory.arenas()[0].bytes(), 2 * 64);
    assert_eq!(memory.arenas()[0].lower_bound, 2 * 64);
    let memory = planned(&chain(20), Sim::new("a"), false).unwrap();
    assert_eq!(memory.arenas()[0].bytes(), 21 * 64);
}

#[test]
fn offsets_are_aligned() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[3]).unwrap();
    let b = graph.scale(a, 1.0).unwrap();
    let c = graph.add(a, b).unwrap();
    graph.set_output(c, "c").unwrap();
    let memory = planned(&graph, Sim::new("a"), true).unwrap();
    for id in graph.storage_ids() {
        let slot = memory.slot(id, DeviceId::FIRST).unwrap();
        assert_eq!((slot.offset % 16, slot.bytes), (0, 16));
    }
}

#[test]
fn an_arena_beyond_the_buffer_limit_is_split() {
    let memory = planned(&chain(3), Sim::new("a").with_max_buffer(64), true).unwrap();
    assert_eq!(memory.arenas()[0].chunks, [64, 64]);
}

#[test]
fn a_storage_beyond_the_buffer_limit_is_named() {
    let error = planned(&chain(1), Sim::new("a").with_max_buffer(63), true).unwrap_err();
    assert_eq!(
        error,
        CompileError::TooLarge {
            storage: "a".into(),
            bytes: 64,
            device: "a".into(),
            max: 63,
        }
    );
}

#[test]
fn unused_inputs_and_states_take_no_arena() {
    let mut graph = chain(1);
    let state = graph.state("s", DType::F32, &[16]).unwrap();
    graph
        .copy_into(graph.value_ids().next().unwrap(), state)
        .unwrap();
    let memory = planned(&graph, Sim::new("a"), true).unwrap();
    let of = |value| memory.slot(graph.value(value).unwrap().storage, DeviceId::FIRST);
    assert_eq!(of(state), None);
    assert_eq!(of(graph.value_ids().nth(1).unwrap()), None);
}

#[test]
fn the_dump_shows_the_peak_the_bound_and_each_slot() {
    let graph = chain(2);
    let device = Sim::new("a");
    let memory = planned(&graph, Sim::new("a"), true).unwrap();
    let expected = "\
memory:
  a: 128 bytes in 1 buffer, the lower bound is 128
  input `a`: buffer 0, bytes 0..64
  temporary `scale.0`: buffer 0, bytes 64..128
  output `y`: buffer 0, bytes 0..64
";
    assert_eq!(memory.dump(&graph, &[Arc::new(device)]), expected);
}

proptest! {
    #[test]
    fn packing_keeps_what_lives_together_apart(
        items in prop::collection::vec((0usize..20, 0usize..10, 0usize..9), 0..40),
        limit in 8usize..40,
    ) {
        let requests: Vec<Request> = items
            .iter()
            .map(|&(start, len, units)| Request {
                lifetime: Lifetime { start, end: start + len },
                bytes: units * 16,
            })
            .collect();
        let (slots, chunks) = pack(&requests, limit * 16);
        for (i, (a, x)) in requests.iter().zip(&slots).enumerate() {
            prop_assert_eq!((x.bytes, x.offset % 16), (a.bytes, 0));
            prop_assert!(x.bytes == 0 || x.offset + x.bytes <= chunks[x.chunk]);
            for (b, y) in requests.iter().zip(&slots).skip(i + 1) {
                prop_assert!(!(a.lifetime.overlaps(&b.lifetime) && x.overlaps(y)));
            }
        }
        let total: usize = chunks.iter().sum();
        prop_assert!(chunks.iter().all(|&chunk| chunk <= limit * 16));
        prop_assert!(total >= lower_bound(&requests));
        prop_assert!(total <= requests.iter().map(|request| request.bytes).sum());
    }
}
