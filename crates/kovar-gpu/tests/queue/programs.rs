//! Launches, their times and their pipelines.

use kovar_core::backend::{Backend, Segment};
use kovar_core::ops::UnaryKind;
use kovar_core::{DType, Graph};
use kovar_gpu::{Gpus, Profile};

use super::{bind, device, negate, negations, options, read};

/// A buffer of 4 KiB with its bytes.
fn filled(backend: &dyn Backend) -> (kovar_core::backend::Buffer, Vec<u8>) {
    let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 5) as u8 & 0x3f).collect();
    let buffer = backend.alloc(4096).unwrap();
    backend.queue().write(&buffer, 0, &bytes).unwrap();
    (buffer, bytes)
}

#[test]
fn a_kernel_bound_twice_gives_two_programs() {
    let backend = device(9);
    let (kernel, storage) = {
        let mut graph = Graph::new();
        let x = graph.temp("x", DType::F32, &[512]).unwrap();
        let op = kovar_core::ops::Op::Unary(kovar_core::ops::Unary {
            kind: UnaryKind::Neg,
        });
        graph.apply_in_place(op, &[x]).unwrap();
        let nodes: Vec<_> = graph.node_ids().collect();
        let segment = Segment::unfused(&graph, &nodes);
        let storage = graph.value(x).unwrap().storage;
        (backend.compile(segment).unwrap(), storage)
    };
    let buffers = [filled(&backend), filled(&backend)];
    let programs = [0, 1].map(|i| bind(kernel.as_ref(), storage, &buffers[i].0, i * 2048));
    drop(kernel);
    for (i, (buffer, mut expected)) in buffers.into_iter().enumerate() {
        let launched = backend.queue().launch(programs[i].as_ref(), &[]);
        assert_eq!(launched, Ok(()));
        negate(&mut expected[i * 2048..][..2048]);
        assert_eq!(read(&backend, &buffer), expected);
    }
}

#[test]
fn long_programs_are_cut_and_encoded_on_several_threads() {
    // Cut often, and in parallel.
    for parallel in [10, usize::MAX] {
        let id = if parallel == 10 { 10 } else { 11 };
        let backend = Gpus::new()
            .open(options(id).submissions(7, parallel))
            .unwrap();
        let (buffer, mut expected) = filled(&backend);
        for times in [1, 7, 8, 301] {
            let program = negations(&backend, &buffer, 0, 1024, times);
            backend.queue().launch(program.as_ref(), &[]).unwrap();
            if times % 2 == 1 {
                negate(&mut expected);
            }
            assert_eq!(read(&backend, &buffer), expected);
        }
    }
}

#[test]
fn a_run_that_is_broken_off_leaves_the_device_usable() {
    let backend = Gpus::new()
        .open(options(12).submissions(5, usize::MAX))
        .unwrap();
    let (buffer, _) = filled(&backend);
    let program = negations(&backend, &buffer, 0, 1024, 100);
    let mut asked = 0;
    let all = backend
        .queue()
        .launch_while(program.as_ref(), &[], &mut || {
            asked += 1;
            asked < 4
        });
    assert_eq!((all, asked), (Ok(false), 4));
    backend.queue().fill(&buffer, 0, 4096, 1).unwrap();
    let all = backend
        .queue()
        .launch_while(program.as_ref(), &[], &mut || true);
    assert_eq!(all, Ok(true));
    assert_eq!(read(&backend, &buffer), [1; 4096]);
}

#[test]
fn a_profile_has_the_time_of_each_dispatch() {
    let backend = device(13);
    if !backend.adapter_info().unwrap().timestamps {
        assert!(backend.start_profile().is_err());
        return;
    }
    let (buffer, mut expected) = filled(&backend);
    let program = negations(&backend, &buffer, 0, 1024, 3);
    backend.start_profile().unwrap();
    backend.queue().launch(program.as_ref(), &[]).unwrap();
    negate(&mut expected);
    let mut go_on = || true;
    let all = backend
        .queue()
        .launch_while(program.as_ref(), &[], &mut go_on);
    assert_eq!(all, Ok(true));
    negate(&mut expected);
    let profile = backend.stop_profile();
    backend.queue().launch(program.as_ref(), &[]).unwrap();
    negate(&mut expected);
    assert_eq!(backend.stop_profile(), Profile::default());
    assert_eq!(read(&backend, &buffer), expected);
    let nodes: Vec<_> = profile
        .dispatches
        .iter()
        .map(|d| (d.op, d.kernel, d.node))
        .collect();
    let launch = [0, 1, 2].map(|node| ("neg", "unary", node));
    assert_eq!(nodes, [launch, launch].concat());
    assert!(profile.dispatches.is_sorted_by_key(|d| d.start));
    assert_eq!(profile.kernels()[0].count, 6);
}

#[test]
fn a_capture_without_a_debugger_is_a_plain_run() {
    let backend = device(13);
    let (buffer, mut expected) = filled(&backend);
    let program = negations(&backend, &buffer, 0, 1024, 1);
    let capture = backend.start_capture().unwrap();
    backend.queue().launch(program.as_ref(), &[]).unwrap();
    negate(&mut expected);
    assert!(backend.start_capture().is_err(), "captures do not nest");
    capture.end().unwrap();
    drop(backend.start_capture().unwrap());
    backend.start_capture().unwrap().end().unwrap();
    assert_eq!(read(&backend, &buffer), expected);
}

#[test]
fn compiled_pipelines_are_kept_where_the_api_can() {
    let folder = tempfile::tempdir().unwrap();
    let run = |id| {
        let options = options(id).cache_folder(folder.path());
        let backend = Gpus::new().open(options).unwrap();
        let (buffer, mut expected) = filled(&backend);
        let program = negations(&backend, &buffer, 0, 1024, 1);
        backend.queue().launch(program.as_ref(), &[]).unwrap();
        negate(&mut expected);
        assert_eq!(read(&backend, &buffer), expected);
        backend.info().driver.clone()
    };
    let driver = run(14);
    let files = || {
        std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    if driver.starts_with("vulkan") {
        assert_eq!(files().count(), 1);
    }
    run(14);
    // A file that another program spoiled is no error.
    for file in files() {
        std::fs::write(file, b"not a cache").unwrap();
    }
    run(14);
}
