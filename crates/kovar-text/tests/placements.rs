//! Models on several CPU devices, each of which rejects the memory of the others.

mod common;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use common::{argmax, repository};
use kovar_core::StorageKind;
use kovar_core::backend::Backend;
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_formats::Gguf;
use kovar_runtime::{DeviceId, Homes, Plan, PlanMemory};
use kovar_text::{LogitsOf, Model, ModelOptions};

const PROMPT: [u32; 10] = [400, 71, 9, 312, 28, 55, 640, 12, 91, 3];

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

/// Placements: a name, the number of devices, and the homes of the storages.
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
    // Tensors alternate between devices.
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

/// The greedy tokens after a prompt, and the last logits.
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

fn load(path: &Path, n_devices: usize, homes: Homes) -> Model {
    let options = ModelOptions {
        context: Some(64),
        homes,
        ..ModelOptions::default()
    };
    Model::load(Gguf::open(path).unwrap(), devices(n_devices), &options).unwrap()
}

/// Layers streamed to the second of two devices give the same results as layers streamed on one
/// device.
fn streamed_layers_agree(path: &Path, prompt: &[u32], n: usize) -> Vec<u32> {
    let streamed = |to| {
        Homes::all_on(device(0))
            .pin("blk.*", device(to))
            .stream("blk.*")
    };
    let expected = greedy(&mut load(path, 1, streamed(0)), prompt, n);
    let mut model = load(path, 2, streamed(1));
    let found = greedy(&mut model, prompt, n);
    assert_eq!(found, expected);
    let step = model.plans().next().unwrap();
    let [_, memory] = step.memory() else {
        panic!("two devices")
    };
    let layer = |name: &str| -> usize {
        let tensors = model.file().tensors();
        let tensors = tensors.filter(|tensor| tensor.name().starts_with(name));
        tensors.map(|tensor| tensor.bytes().unwrap().len()).sum()
    };
    assert_eq!(memory.weights, 0);
    assert!(memory.arena < 2 * layer("blk.1.") + (1 << 20), "{memory:?}");
    found.0
}

fn all_placements_agree(path: &Path, n_layers: usize, prompt: &[u32], n: usize) {
    let mut expected = None;
    for (name, n_devices, homes) in placements(n_layers) {
        let mut model = load(path, n_devices, homes);
        let found = greedy(&mut model, prompt, n);
        for plan in model.plans() {
            let used: Vec<_> = plan.kernels().iter().map(|kernel| kernel.device).collect();
            let all = DeviceId::all(n_devices).all(|device| used.contains(&device));
            assert!(all, "{name}: {}", plan.describe());
            assert!(plan.rejected_pins().is_empty(), "{name}");
        }
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(&found, expected, "{name}");
    }
}

#[test]
fn a_story_is_the_same_on_every_placement() {
    let model = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    all_placements_agree(&model, 8, &PROMPT, 16);
}

#[test]
fn a_recurrent_model_s_states_move_with_its_layers() {
    let path = repository("models/rwkv7-story-6m/rwkv7-story-6m-q8_0.gguf");
    let expected = greedy(&mut load(&path, 1, Homes::all_on(device(0))), &PROMPT, 8);
    let alternate = (0..6).fold(Homes::all_on(device(0)), |homes, layer| {
        homes.pin(&format!("blk.{layer}.*"), device(layer % 2))
    });
    // The mixing weights are on another device than the state that they update.
    let mixing = Homes::all_on(device(0)).pin("blk.*.time_mix_*", device(1));
    for homes in [alternate, mixing] {
        let mut model = load(&path, 2, homes);
        assert_eq!(greedy(&mut model, &PROMPT, 8), expected);
        for plan in model.plans() {
            assert!(!plan.schedule().copies.is_empty(), "{}", plan.describe());
        }
    }
}

#[test]
fn layers_that_exceed_a_budget_go_to_the_next_device() {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let budget = 6 << 20;
    let homes = Homes::all_on(device(0)).budget(device(0), budget);
    let mut model = load(&path, 2, homes.clone());
    let expected = greedy(&mut load(&path, 1, Homes::all_on(device(0))), &PROMPT, 4);
    assert_eq!(greedy(&mut model, &PROMPT, 4), expected);
    let [first, second] = &model.session().memory().unwrap()[..] else {
        panic!("two devices")
    };
    assert!(
        (first.weights + first.states + first.arena) as u64 <= budget,
        "{first:?}"
    );
    assert!(
        first.weights > 0 && second.weights > 0,
        "{first:?} {second:?}"
    );

    let options = ModelOptions {
        context: Some(64),
        homes,
        ..ModelOptions::default()
    };
    let file = Gguf::open(&path).unwrap();
    let forecast = Model::forecast(file, devices(2), &options, 1).unwrap().plan;
    let step = model
        .plans()
        .find(|plan| plan.schedule() == &forecast.schedule)
        .unwrap();
    for (foreseen, found) in forecast.memory.iter().zip(step.memory()) {
        let programs = found.programs;
        assert_eq!(
            &PlanMemory {
                programs,
                ..foreseen.clone()
            },
            found
        );
    }
}

#[test]
fn a_story_is_the_same_when_layers_are_streamed_through_two_slots() {
    let model = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let found = streamed_layers_agree(&model, &PROMPT, 16);
    // Streamed weights are multiplied in the form of the file, which rounds differently from the
    // prepared forms; no token of this text changes.
    let mut resident = load(&model, 1, Homes::all_on(device(0)));
    assert_eq!(found, greedy(&mut resident, &PROMPT, 16).0);
}

#[test]
fn a_prompt_in_micro_batches_is_the_same_on_two_devices() {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let split = (4..8).fold(Homes::all_on(device(0)), |homes, layer| {
        homes.pin(&format!("blk.{layer}.*"), device(1))
    });
    let mut found = Vec::new();
    for (n_devices, homes) in [(1, Homes::all_on(device(0))), (2, split)] {
        let options = ModelOptions {
            context: Some(640),
            homes,
            micro_batch: 40,
            ..ModelOptions::default()
        };
        let file = Gguf::open(&path).unwrap();
        let mut model = Model::load(file, devices(n_devices), &options).unwrap();
        let mut logits = Vec::new();
        let text = long_text(150);
        model.eval(&text, LogitsOf::Last, &mut logits).unwrap();
        let plans = model.plans();
        let largest = plans.map(|plan| {
            let ids = plan.graph().whole(StorageKind::Input, "ids").unwrap();
            plan.graph().value(ids).unwrap().layout.elements()
        });
        assert_eq!(largest.max(), Some(32));
        found.push(logits);
    }
    assert_eq!(found[0], found[1]);
}

/// A long repetitive text.
fn long_text(n: usize) -> Vec<u32> {
    PROMPT.into_iter().cycle().take(n).collect()
}

fn load_streamed(path: &Path, homes: Homes) -> Model {
    let options = ModelOptions {
        context: Some(640),
        homes: homes.stream("blk.*"),
        ..ModelOptions::default()
    };
    Model::load(Gguf::open(path).unwrap(), devices(1), &options).unwrap()
}

/// How often the plan of a model that streams most uploads each of the weights that it streams.
fn uploads(model: &Model) -> (usize, usize) {
    let plans = model.plans();
    let uploads = plans.map(|plan| {
        let weights: HashSet<_> = plan.schedule().uploads.iter().map(|u| u.weight).collect();
        (plan.schedule().uploads.len(), weights.len())
    });
    uploads.max().unwrap()
}

#[test]
fn streamed_weights_cross_once_for_all_micro_batches_of_a_long_prompt() {
    for path in [
        "models/llama-story-6m/llama-story-6m-q8_0.gguf",
        "models/rwkv7-story-6m/rwkv7-story-6m-q8_0.gguf",
    ] {
        let text = long_text(141);
        let mut model = load_streamed(&repository(path), Homes::all_on(device(0)));
        let mut last = Vec::new();
        model.eval(&text, LogitsOf::Last, &mut last).unwrap();
        let scalars = |plan: &Plan| plan.graph().scalars().len();
        let long = model.plans().map(scalars).max().unwrap();
        assert!(long >= 3, "{path}: a micro-batch for each size of a step");
        let (uploads, weights) = uploads(&model);
        assert!(weights > 50, "{path}");
        assert_eq!(uploads, weights, "{path}");

        // In short steps, each of which uploads the weights.
        let mut stepped = load_streamed(&repository(path), Homes::all_on(device(0)));
        let mut all = Vec::new();
        stepped.eval(&text, LogitsOf::All, &mut all).unwrap();
        assert!(stepped.plans().all(|plan| scalars(plan) == 1));
        let vocab_len = model.vocab_len();
        let row = |logits: &[f32]| logits[logits.len() - vocab_len..].to_vec();
        assert_eq!(last, row(&all), "{path}");
        for token in [7, 300] {
            model.eval(&[token], LogitsOf::Last, &mut last).unwrap();
            stepped.eval(&[token], LogitsOf::All, &mut all).unwrap();
            assert_eq!(last, all, "{path}");
        }

        // The step of another length replaces the first.
        model.eval(&text[..77], LogitsOf::Last, &mut last).unwrap();
        stepped.eval(&text[..77], LogitsOf::All, &mut all).unwrap();
        assert_eq!(last, row(&all), "{path}");
        let plans = model.plans().filter(|plan| scalars(plan) > 1);
        assert_eq!(plans.count(), 1, "{path}");
    }
}

#[test]
fn a_long_step_that_exceeds_a_budget_is_split_into_short_ones() {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let bytes = |n_tokens| {
        let options = ModelOptions {
            context: Some(640),
            homes: Homes::all_on(device(0)).stream("blk.*"),
            ..ModelOptions::default()
        };
        let file = Gguf::open(&path).unwrap();
        let forecast = Model::forecast(file, devices(1), &options, n_tokens)
            .unwrap()
            .plan;
        let memory = &forecast.memory[0];
        (memory.weights + memory.states + memory.arena) as u64
    };
    let (short, long) = (bytes(512), bytes(520));
    assert!(short < long, "{short} {long}");
    let text = long_text(520);
    let mut expected = Vec::new();
    let mut free = load_streamed(&path, Homes::all_on(device(0)));
    free.eval(&text, LogitsOf::Last, &mut expected).unwrap();
    let homes = Homes::all_on(device(0)).budget(device(0), long - 1);
    let mut model = load_streamed(&path, homes);
    let mut found = Vec::new();
    model.eval(&text, LogitsOf::Last, &mut found).unwrap();
    assert_eq!(found, expected);
    let mut plans = model.plans();
    assert!(plans.all(|plan| plan.graph().scalars().len() == 1));
}

#[test]
#[ignore = "needs KOVAR_SMOLLM2, the file that scripts/test fetches"]
fn a_chat_model_s_text_is_the_same_on_every_placement() {
    let path = std::env::var("KOVAR_SMOLLM2").expect("KOVAR_SMOLLM2 names the model file");
    let prompt = [504, 3575, 282, 4649, 314];
    all_placements_agree(Path::new(&path), 30, &prompt, 8);
    streamed_layers_agree(Path::new(&path), &prompt, 8);
}
