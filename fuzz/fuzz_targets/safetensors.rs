//! Any bytes are a safetensors file or an error; the tensors of a valid file cover its data.
//!
//!     RUSTC_BOOTSTRAP=1 cargo fuzz run safetensors -- -max_total_time=60
#![no_main]

use std::sync::Arc;

use kovar_core::HostBytes;
use kovar_formats::safetensors::SafeTensors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match SafeTensors::from_bytes(HostBytes::new(Arc::new(data.to_vec()))) {
        Ok(file) => {
            let mut covered = 0;
            for tensor in file.tensors() {
                let bytes = file.bytes(tensor);
                assert_eq!(bytes.len(), tensor.dtype().bytes() * tensor.elements());
                assert_eq!(bytes.as_slice(), &data[tensor.range()]);
                assert!(std::ptr::eq(file.tensor(tensor.name()).unwrap(), tensor));
                covered += bytes.len();
                let _ = file.read_f32(tensor.name());
                let _ = file.read_i64(tensor.name());
            }
            let header = u64::from_le_bytes(data[..8].try_into().unwrap()) as usize;
            assert_eq!(8 + header + covered, data.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
