//! Helpers of the model tests.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kovar_core::DType;
use kovar_core::backend::Backend;
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_formats::ModelFile;
use kovar_text::{LogitsOf, Model, ModelOptions};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

pub fn cpu() -> Vec<Arc<dyn Backend>> {
    vec![Arc::new(CpuBackend::new(CpuOptions::new()).unwrap())]
}

pub fn load(path: &Path, options: &ModelOptions) -> Model {
    Model::load(ModelFile::open(path).unwrap(), cpu(), options).unwrap()
}

/// Caches of full precision.
pub fn exact() -> ModelOptions {
    ModelOptions {
        cache_dtype: DType::F32,
        ..ModelOptions::default()
    }
}

/// The logits after each of `ids`, row by row.
pub fn all_logits(model: &mut Model, ids: &[u32]) -> Vec<f32> {
    let mut logits = Vec::new();
    model.truncate(0);
    model.eval(ids, LogitsOf::All, &mut logits).unwrap();
    assert_eq!(logits.len(), ids.len() * model.vocab_len());
    logits
}

/// The index of the largest.
pub fn argmax(logits: &[f32]) -> usize {
    (0..logits.len())
        .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
        .unwrap()
}

/// The largest difference.
pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}
