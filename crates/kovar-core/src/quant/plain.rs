//! The plain floats, little-endian. Callers have checked that the lengths agree.

use half::{bf16, f16};

pub(super) fn decode_f32(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(*bytes);
    }
}

pub(super) fn decode_f16(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f16::from_le_bytes(*bytes).to_f32();
    }
}

pub(super) fn decode_bf16(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = bf16::from_le_bytes(*bytes).to_f32();
    }
}

pub(super) fn encode_f32(values: &[f32], out: &mut [u8]) {
    for (value, bytes) in values.iter().zip(out.as_chunks_mut().0) {
        *bytes = value.to_le_bytes();
    }
}

pub(super) fn encode_f16(values: &[f32], out: &mut [u8]) {
    for (value, bytes) in values.iter().zip(out.as_chunks_mut().0) {
        *bytes = f16::from_f32(*value).to_le_bytes();
    }
}

pub(super) fn encode_bf16(values: &[f32], out: &mut [u8]) {
    for (value, bytes) in values.iter().zip(out.as_chunks_mut().0) {
        *bytes = bf16::from_f32(*value).to_le_bytes();
    }
}
