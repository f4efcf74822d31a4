//! Errors come back as values.

use kovar_core::backend::Backend;
use kovar_core::error::DeviceError;
use kovar_gpu::{GpuError, GpuOptions, Gpus};

use super::{device, negations, options, read};

#[test]
fn memory_that_no_device_has_is_an_error_with_its_size() {
    let backend = device(5);
    for bytes in [1usize << 50, usize::MAX, usize::MAX - 3] {
        let error = backend.alloc(bytes).unwrap_err();
        let expected = DeviceError::OutOfMemory {
            device: backend.info().id.clone(),
            what: "a buffer".to_owned(),
            requested: bytes,
        };
        assert_eq!(error, expected);
    }
    let buffer = backend.alloc_zeroed(100).unwrap();
    assert_eq!(read(&backend, &buffer), [0; 100]);
}

#[test]
fn a_lost_device_is_typed_and_sticky_and_another_can_be_opened() {
    let gpus = Gpus::new();
    let backend = gpus.open(options(6)).unwrap();
    let other = gpus.open(options(7)).unwrap();
    let buffer = backend.alloc_zeroed(4096).unwrap();
    let program = negations(&backend, &buffer, 0, 1024, 1);
    let queue = backend.queue();
    let fence = queue.fence().unwrap();
    backend.lose();
    let is_lost = |result: Result<(), DeviceError>| {
        assert!(
            matches!(result, Err(DeviceError::Lost { .. })),
            "{result:?}"
        );
    };
    is_lost(queue.write(&buffer, 0, &[1; 4096]));
    is_lost(queue.fill(&buffer, 0, 3, 1));
    is_lost(queue.launch(program.as_ref(), &[]));
    is_lost(queue.read(&buffer, 0, 8).map(|_| ()));
    is_lost(queue.fence().map(|_| ()));
    is_lost(queue.wait(fence));
    is_lost(backend.alloc(16).map(|_| ()));
    let buffer = other.alloc_zeroed(64).unwrap();
    assert_eq!(read(&other, &buffer), [0; 64]);
    // Opening the GPU again gives a device that works.
    let again = gpus.open(options(6)).unwrap();
    let buffer = again.alloc_zeroed(64).unwrap();
    assert_eq!(read(&again, &buffer), [0; 64]);
}

#[test]
fn memory_and_programs_of_another_device_are_refused() {
    let (one, other) = (device(5), device(7));
    let buffer = other.alloc_zeroed(64).unwrap();
    let program = negations(&other, &buffer, 0, 4, 1);
    let refused = |result: Result<(), DeviceError>| {
        assert!(
            matches!(result, Err(DeviceError::Foreign { .. })),
            "{result:?}"
        );
    };
    refused(one.queue().write(&buffer, 0, &[1]));
    refused(one.queue().read(&buffer, 0, 1).map(|_| ()));
    refused(one.queue().launch(program.as_ref(), &[]));
}

#[test]
fn a_gpu_that_the_machine_lacks_is_an_error_with_their_number() {
    let error = Gpus::new().open(GpuOptions::new().index(1000)).unwrap_err();
    assert!(matches!(error, GpuError::None { index: 1000, found } if found > 0));
    assert!(Gpus::new().open(options(5)).is_ok());
}
