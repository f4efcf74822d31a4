//! Any bytes are a GGUF file or an error; a valid file is written back with the same contents.
//!
//!     RUSTC_BOOTSTRAP=1 cargo fuzz run gguf -- -max_total_time=60
#![no_main]

use std::sync::Arc;

use kovar_core::HostBytes;
use kovar_formats::gguf::{ALIGNMENT_KEY, Gguf, GgufError, GgufWriter};
use libfuzzer_sys::fuzz_target;

fn open(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
    Gguf::from_bytes(HostBytes::new(Arc::new(bytes)))
}

fuzz_target!(|data: &[u8]| {
    let file = match open(data.to_vec()) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // An alignment of gigabytes is valid, but a file padded to it is too large to write.
    if file.alignment() > 1 << 16 {
        return;
    }
    let mut writer = GgufWriter::with_alignment(file.alignment()).unwrap();
    for (key, value) in file.metadata().iter() {
        if key != ALIGNMENT_KEY {
            writer.metadata(key, value.clone()).unwrap();
        }
    }
    for tensor in file.tensors() {
        let data = file.bytes(tensor);
        writer
            .tensor_bytes(tensor.name(), tensor.dtype(), tensor.dims(), data)
            .unwrap();
    }
    let again = open(writer.to_bytes().unwrap()).unwrap();
    assert_eq!(file.alignment(), again.alignment());
    for (key, value) in file.metadata().iter() {
        // Compared as text, because NaN is not equal to itself.
        if key != ALIGNMENT_KEY {
            assert_eq!(
                format!("{value:?}"),
                format!("{:?}", again.metadata().get(key).unwrap())
            );
        }
    }
    assert_eq!(file.tensors().len(), again.tensors().len());
    for (a, b) in file.tensors().zip(again.tensors()) {
        assert_eq!(
            (a.name(), a.dtype(), a.dims()),
            (b.name(), b.dtype(), b.dims())
        );
        assert_eq!(file.bytes(a).as_slice(), again.bytes(b).as_slice());
    }
});
