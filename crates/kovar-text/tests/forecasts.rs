//! Forecasts of models compared with what they then allocate, and the effect of budgets.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::{data, exact, repository};
use kovar_core::backend::Backend;
use kovar_core::{DType, HostBytes};
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_formats::ModelFile;
use kovar_formats::gguf::{Gguf, GgufWriter};
use kovar_runtime::{DeviceId, DeviceRates, DeviceUsage, Homes, LinkRates, Policy};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};
use kovar_text::perplexity::{SCORED_AT_ONCE, perplexity};
use kovar_text::{LogitsOf, Model, ModelOptions};

fn device(n: usize) -> DeviceId {
    DeviceId::all(2).nth(n).unwrap()
}

fn cpus(n: usize) -> Vec<Arc<dyn Backend>> {
    let ids = ["cpu", "cpu1"].into_iter().take(n);
    ids.map(|id| {
        let options = CpuOptions::new().threads(1).id(id);
        Arc::new(CpuBackend::new(options).unwrap()) as Arc<dyn Backend>
    })
    .collect()
}

fn story() -> ModelFile {
    ModelFile::open(repository("models/llama-story-6m/llama-story-6m-q8_0.gguf")).unwrap()
}

fn text(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i * 37 % 61).collect()
}

/// Evaluates a prompt, a token after it, and with several rows of logits a text.
fn use_model(model: &mut Model, n_tokens: usize, logit_rows: usize) {
    let mut logits = Vec::new();
    model
        .eval(&text(n_tokens), LogitsOf::Last, &mut logits)
        .unwrap();
    if logit_rows > 1 {
        model.truncate(0);
        let rows = logit_rows.min(n_tokens);
        model.eval(&text(rows), LogitsOf::All, &mut logits).unwrap();
    }
    model.truncate(0);
    model.eval(&[1], LogitsOf::Last, &mut logits).unwrap();
}

#[test]
fn a_forecast_is_what_simulated_devices_then_allocate() {
    for name in ["llama-tiny", "rwkv7-tiny"] {
        for (n_tokens, logit_rows) in [(1, 1), (40, 1), (40, 8), (8, 40)] {
            let options = ModelOptions {
                context: Some(64),
                homes: Homes::all_on(device(0)).pin("blk.1.*", device(1)),
                logit_rows,
                ..exact()
            };
            let devices = ["one", "two"].map(|id| {
                Arc::new(SimulatedDevice::new(SimulatedOptions {
                    id: id.to_owned(),
                    ..SimulatedOptions::default()
                }))
            });
            let backends = || {
                devices
                    .iter()
                    .map(|d| d.clone() as Arc<dyn Backend>)
                    .collect()
            };
            let file = || ModelFile::open(data(name)).unwrap();
            let forecasted = Model::forecast(file(), backends(), &options, n_tokens).unwrap();
            assert!(devices.iter().all(|device| device.allocated_bytes() == 0));
            let mut model = Model::load(file(), backends(), &options).unwrap();
            use_model(&mut model, n_tokens, logit_rows);
            assert_eq!(model.session().memory().unwrap(), forecasted.held);
            for (device, held) in devices.iter().zip(&forecasted.held) {
                let asked = held.weights + held.states + held.arena;
                assert_eq!(device.allocated_bytes(), asked as u64, "{name} {n_tokens}");
            }
        }
    }
}

#[test]
fn a_forecast_is_within_two_percent_of_what_cpus_then_allocate() {
    for (n_tokens, logit_rows) in [(1, 1), (300, 1), (512, 128)] {
        let half = (4..8).fold(Homes::all_on(device(0)), |homes, layer| {
            homes.pin(&format!("blk.{layer}.*"), device(1))
        });
        let options = ModelOptions {
            context: Some(4096),
            homes: half,
            logit_rows,
            ..ModelOptions::default()
        };
        let forecasted = Model::forecast(story(), cpus(2), &options, n_tokens).unwrap();
        let mut model = Model::load(story(), cpus(2), &options).unwrap();
        use_model(&mut model, n_tokens, logit_rows);
        let total = |held: &DeviceUsage| held.weights + held.states + held.arena;
        let asked = model.session().memory().unwrap();
        for (at, (held, asked)) in forecasted.held.iter().zip(&asked).enumerate() {
            let programs: usize = model.plans().map(|plan| plan.memory()[at].programs).sum();
            let (forecasted, asked) = (
                total(held) + forecasted.programs[at],
                total(asked) + programs,
            );
            let difference = (asked as f64 / forecasted as f64 - 1.0).abs();
            assert!(
                difference < 0.02,
                "{n_tokens}: {forecasted} forecasted, {asked} asked for"
            );
        }
    }
}

#[test]
fn only_valid_rows_of_a_cache_are_copied_to_attention() {
    let options = ModelOptions {
        context: Some(64),
        homes: Homes::all_on(device(0))
            .pin("blk.*.cache.*", device(1))
            .pin("attention.*", device(0)),
        ..ModelOptions::default()
    };
    let forecasted = Model::forecast(story(), cpus(2), &options, 1).unwrap();
    // 8 layers with a row of keys and one of values for each token, of 4 heads of 32 F16 elements.
    let rows = |tokens: usize| 8 * 2 * 4 * 32 * 2 * tokens;
    let [empty, full] = forecasted.copied_bytes;
    assert_eq!(full - empty, rows(64) - rows(1));
    let mut model = Model::load(story(), cpus(2), &options).unwrap();
    let mut alone = Model::load(story(), cpus(1), &ModelOptions::default()).unwrap();
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for tokens in text(40).chunks(7) {
        model.eval(tokens, LogitsOf::Last, &mut found).unwrap();
        alone.eval(tokens, LogitsOf::Last, &mut expected).unwrap();
        assert_eq!(found, expected);
    }
}

/// The perplexity of a text, and the maximum number of rows of logits in the model's steps.
fn scored(n_devices: usize, options: &ModelOptions) -> (f64, usize, Model) {
    let mut model = Model::load(story(), cpus(n_devices), options).unwrap();
    let mut go_on = |_: usize, _: usize, _: f64| ControlFlow::Continue(());
    let scored = perplexity(&mut model, &text(512), None, 512, &mut go_on).unwrap();
    let rows = model.plans().filter_map(|plan| {
        let rows = plan.graph().value(plan.output("logits")?).unwrap();
        Some(rows.dims().from_end(1))
    });
    let rows = rows.max().unwrap();
    (scored.value, rows, model)
}

#[test]
fn perplexity_fits_a_budget_with_memory_reserved_for_its_logits() {
    let options = |budget: Option<u64>, logit_rows| {
        let homes = Homes::all_on(device(0));
        ModelOptions {
            context: Some(512),
            homes: match budget {
                Some(bytes) => homes.budget(device(0), bytes),
                None => homes,
            },
            // No longer steps are needed, so no memory is reserved for them.
            micro_batch: SCORED_AT_ONCE,
            logit_rows,
            ..ModelOptions::default()
        }
    };
    let (expected, rows, free) = scored(1, &options(None, 1));
    assert_eq!(rows, SCORED_AT_ONCE);
    let used = &free.session().memory().unwrap()[0];
    let all = (used.weights + used.states + used.arena) as u64;

    // Exactly enough memory: weights and steps are as before.
    let (value, rows, model) = scored(1, &options(Some(all), SCORED_AT_ONCE));
    assert_eq!((value, rows), (expected, SCORED_AT_ONCE));
    assert_eq!(&model.session().memory().unwrap()[0], used);

    // Less memory: whole layers are on the next device, and nothing is uploaded in every step.
    for budget in [all - 1, all * 2 / 3, all / 2] {
        let (value, rows, model) = scored(2, &options(Some(budget), SCORED_AT_ONCE));
        assert_eq!((value, rows), (expected, SCORED_AT_ONCE), "{budget}");
        let [first, second] = &model.session().memory().unwrap()[..] else {
            panic!("two devices");
        };
        let held = (first.weights + first.states + first.arena) as u64;
        assert!(held <= budget, "{held} of {budget}");
        assert!(first.weights > 0 && second.weights > 0, "{budget}");
        for plan in model.plans() {
            let memory = plan.memory();
            assert!(!plan.is_spilled(), "{budget}: {memory:?} {first:?}");
            assert!(plan.schedule().uploads.is_empty());
        }
    }

    // Without reserved memory, steps give fewer rows. The kernels of one row round differently from
    // those of many rows, so the value is compared with that of one device and steps of one row.
    let (expected, rows, _) = scored(1, &options(Some(2 * all), 1));
    assert_eq!(rows, 1);
    let (value, rows, _) = scored(2, &options(Some(all / 2), 1));
    assert_eq!((value, rows), (expected, 1));
}

/// A Llama of two blocks whose feed-forward matrices have a mebibyte each.
fn wide() -> ModelFile {
    const WIDTH: usize = 64;
    const FFN: usize = 4096;
    let mut writer = GgufWriter::new();
    let sizes = [
        ("llama.embedding_length", WIDTH as u32),
        ("llama.attention.head_count", 2),
        ("llama.context_length", 4096),
        ("llama.block_count", 2),
        ("llama.feed_forward_length", FFN as u32),
    ];
    writer.metadata("general.architecture", "llama").unwrap();
    for (key, size) in sizes {
        writer.metadata(key, size).unwrap();
    }
    let eps = "llama.attention.layer_norm_rms_epsilon";
    writer.metadata(eps, 1e-5f32).unwrap();
    let mut tensor = |name: &str, dims: &[usize]| {
        let elements: usize = dims.iter().product();
        let value = |i: usize| ((i * 37 + name.len() * 11) % 101) as f32 / 500.0 - 0.1;
        let data = (0..elements).flat_map(|i| value(i).to_le_bytes());
        let data: Vec<u8> = data.collect();
        writer.tensor(name, DType::F32, dims, data).unwrap();
    };
    tensor("token_embd.weight", &[256, WIDTH]);
    tensor("output_norm.weight", &[WIDTH]);
    for layer in 0..2 {
        let mut block = |name: &str, dims: &[usize]| {
            tensor(&format!("blk.{layer}.{name}.weight"), dims);
        };
        block("attn_norm", &[WIDTH]);
        block("ffn_norm", &[WIDTH]);
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            block(name, &[WIDTH, WIDTH]);
        }
        block("ffn_gate", &[FFN, WIDTH]);
        block("ffn_up", &[FFN, WIDTH]);
        block("ffn_down", &[WIDTH, FFN]);
    }
    let bytes = writer.to_bytes().unwrap();
    Gguf::from_bytes(HostBytes::new(Arc::new(bytes)))
        .unwrap()
        .into()
}

/// The second device computes a hundred times as fast as the first, which has the weights.
fn fast_second() -> Policy {
    let rates = |flops: f64| DeviceRates {
        launch_ns: 100.0,
        dispatch_ns: 100.0,
        float_flops_per_ns: Some(flops),
        quantized_flops_per_ns: None,
        read_bytes_per_ns: 1000.0,
        upload: LinkRates::default(),
        download: LinkRates::default(),
    };
    let mut policy = Policy::default();
    policy.rates.devices.insert("cpu".into(), rates(10.0));
    policy.rates.devices.insert("cpu1".into(), rates(1000.0));
    policy
}

#[test]
fn weights_that_the_scheduler_streams_cross_once_for_all_micro_batches_of_a_long_prompt() {
    let options = |policy| ModelOptions {
        context: Some(2048),
        policy,
        ..ModelOptions::default()
    };
    let tokens = text(1100);
    let mut logits = Vec::new();
    let mut model = Model::load(wide(), cpus(2), &options(fast_second())).unwrap();
    model.eval(&tokens, LogitsOf::Last, &mut logits).unwrap();
    let uploads = |model: &Model| -> Vec<(usize, usize)> {
        let plans = model.plans();
        let sizes = plans.map(|plan| {
            let scalars = plan.graph().scalars().len();
            (scalars, plan.schedule().uploads.len())
        });
        sizes.collect()
    };
    let mut found = uploads(&model);
    found.sort_unstable();
    // The step of one token uploads no weights; the long one uploads the six matrices once, not
    // once per micro-batch.
    let [(1, 0), (micro_batches, 6)] = found[..] else {
        panic!("{found:?}");
    };
    assert!(micro_batches >= 3, "{micro_batches}");

    let mut resident = Model::load(wide(), cpus(1), &options(Policy::default())).unwrap();
    let mut expected = Vec::new();
    resident
        .eval(&tokens, LogitsOf::Last, &mut expected)
        .unwrap();
    let difference = common::max_difference(&logits, &expected);
    assert!(difference < 1e-3, "{difference}");

    // A device that is not faster gets none, and the prompt is evaluated in short steps.
    let mut equal = fast_second();
    equal
        .rates
        .devices
        .insert("cpu1".into(), equal.rates.devices["cpu"]);
    let mut model = Model::load(wide(), cpus(2), &options(equal)).unwrap();
    model.eval(&tokens, LogitsOf::Last, &mut logits).unwrap();
    assert!(uploads(&model).iter().all(|&size| size == (1, 0)));
}
