//! Models on several CPU devices, each of which refuses the memory of the others.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{argmax, repository};
use kovar_core::backend::Backend;
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_formats::Gguf;
use kovar_runtime::{DeviceId, Homes};
use kovar_text::{LogitsOf, Model, ModelOptions};

fn devices(n: usize) -> Vec<Arc<dyn Backend>> {
    let ids = ["cpu", "cpu1", "cpu2"].iter().take(n);
    ids.map(|id| {
        let options = CpuOptions::new().threads(1).id(id);
        Arc::new(CpuBackend::new(options).unwrap()) as Arc<dyn Backend>
    })
    .collect()
}

fn device(n: usize) -> DeviceId {
    DeviceId::all(3).nth(n).unwrap()
}

/// A placement by name: a number of devices and which storages are where.
fn placements(n_layers: usize) -> Vec<(&'static str, usize, Homes)> {
    let first = || Homes::all_on(device(0));
    let alternate = (0..n_layers).fold(first(), |homes, layer| {
        homes.pin(&format!("blk.{layer}.*"), device(layer % 2))
    });
    let attention = first()
        .pin("blk.*.attn_*", device(1))
        .pin("blk.*.cache.*", device(1));
    let feed_forward = first().pin("blk.*.ffn_*", device(1));
    let cache = first()
        .pin("blk.*.cache.*", device(1))
        .pin("blk.*.attn_output*", device(2));
    // A tensor here, a tensor there.
    let tensors = [
        "attn_q",
        "attn_k",
        "cache.v",
        "ffn_up",
        "ffn_norm",
        "attn_output",
    ];
    let scattered = (0..n_layers).fold(first(), |homes, layer| {
        tensors
            .iter()
            .enumerate()
            .fold(homes, |homes, (i, tensor)| {
                let to = device((7 * layer + 5 * i + layer * i) % 3);
                homes.pin(&format!("blk.{layer}.{tensor}*"), to)
            })
    });
    vec![
        ("one device", 1, first()),
        ("alternate layers", 2, alternate),
        ("attention apart", 2, attention),
        ("feed-forward apart", 2, feed_forward),
        ("cache apart", 3, cache),
        ("scattered", 3, scattered),
    ]
}

/// Tokens that follow a prompt, greedily, and the last logits.
fn greedy(model: &mut Model, prompt: &[u32], n: usize) -> (Vec<u32>, Vec<f32>) {
    let (mut ids, mut logits) = (prompt.to_vec(), Vec::new());
    model.eval(prompt, LogitsOf::Last, &mut logits).unwrap();
    for _ in 0..n {
        let next = u32::try_from(argmax(&logits)).unwrap();
        ids.push(next);
        model.eval(&[next], LogitsOf::Last, &mut logits).unwrap();
    }
    (ids, logits)
}

fn all_placements_agree(path: &Path, n_layers: usize, prompt: &[u32], n: usize) {
    let mut expected = None;
    for (name, n_devices, homes) in placements(n_layers) {
        let options = ModelOptions {
            context: Some(64),
            homes,
            ..ModelOptions::default()
        };
        let file = Gguf::open(path).unwrap();
        let mut model = Model::load(file, devices(n_devices), &options).unwrap();
        let found = greedy(&mut model, prompt, n);
        for plan in model.plans() {
            let used: Vec<_> = plan.kernels().iter().map(|kernel| kernel.device).collect();
            let all = DeviceId::all(n_devices).all(|device| used.contains(&device));
            assert!(all, "{name}: {}", plan.describe());
            assert!(plan.lost_pins().is_empty(), "{name}");
        }
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(&found, expected, "{name}");
    }
}

#[test]
fn a_story_is_the_same_on_every_placement() {
    let model = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    all_placements_agree(&model, 8, &[400, 71, 9, 312, 28, 55, 640, 12, 91, 3], 16);
}

#[test]
#[ignore = "needs KOVAR_SMOLLM2, the file that scripts/test fetches"]
fn a_chat_model_s_text_is_the_same_on_every_placement() {
    let path = std::env::var("KOVAR_SMOLLM2").expect("KOVAR_SMOLLM2 names the model file");
    let prompt = [504, 3575, 282, 4649, 314];
    all_placements_agree(Path::new(&path), 30, &prompt, 8);
}
