//! The kernels as Apple GPUs get them. Each variant that the operations' cases need there is
//! translated to the Metal shading language and checked against rules. One translation for each
//! entry point and set of features is kept in `tests/msl`, so that its changes are seen.
//!
//! `KOVAR_BLESS=1 cargo test -p kovar-gpu --lib snapshots` updates the kept translations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kovar_testkit::cases;
use kovar_testkit::harness::compile_case;
use naga::back::msl;
use naga::proc::BoundsCheckPolicies;
use naga::valid::{Capabilities, ValidationFlags, Validator};

use crate::backend::GpuBackend;
use crate::kernel::{Features, variant_of};
use crate::queue::QueueOptions;
use crate::seam::null::{Asked, Null};
use crate::seam::{Caps, Masked, MatrixElement, MatrixShape};

/// An Apple GPU without some features.
fn apple(masked: Features) -> Caps {
    let shape = |inputs, result| MatrixShape {
        m: 8,
        n: 8,
        k: 8,
        inputs,
        result,
    };
    let (single, half) = (MatrixElement::F32, MatrixElement::F16);
    let caps = Caps {
        name: "Apple GPU".to_owned(),
        driver: "Metal".to_owned(),
        features: Features::ALL,
        subgroup_sizes: (32, 32),
        matrices: vec![shape(single, single), shape(half, half)],
        binding_alignment: 256,
        max_binding_bytes: i32::MAX as u64,
        max_buffer_bytes: 4 << 30,
        max_workgroups: 65_535,
        max_workgroup_size: 1024,
        workgroup_bytes: 32 << 10,
        unified_memory: true,
        memory_bytes: Some(16 << 30),
        timestamps: true,
        imports_host: true,
        software: false,
    };
    caps.without(masked)
}

/// The pipelines that the cases of all operations need.
fn variants() -> BTreeSet<Asked> {
    let mut variants = BTreeSet::new();
    for masked in [Features::NONE, Features::MATRICES] {
        let null = Null::with_caps(apple(masked), 1 << 30);
        let options = QueueOptions::default();
        let backend = GpuBackend::with_device("gpu0", null.clone(), options).unwrap();
        for case in cases::all() {
            if let Err(failure) = compile_case(&backend, &case) {
                panic!("{}: {failure}", case.name());
            }
        }
        variants.extend(null.asked());
    }
    variants
}

/// Translates sources as wgpu does for our pipelines. Parsed modules are cached.
#[derive(Default)]
struct Translator {
    parsed: HashMap<String, (naga::Module, naga::valid::ModuleInfo)>,
}

impl Translator {
    fn msl(&mut self, asked: &Asked) -> String {
        let (module, info) = self.parsed.entry(asked.source.clone()).or_insert_with(|| {
            let module = naga::front::wgsl::parse_str(&asked.source)
                .unwrap_or_else(|e| panic!("{}: {}", asked.entry, e.emit_to_string(&asked.source)));
            let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
            let info = validator
                .validate(&module)
                .unwrap_or_else(|e| panic!("{}: {}", asked.entry, e.emit_to_string(&asked.source)));
            (module, info)
        });
        let constants = asked.constants.iter();
        let constants = constants.map(|&(name, value)| (name.to_owned(), f64::from(value)));
        let stage = naga::ShaderStage::Compute;
        let (module, info) = naga::back::pipeline_constants::process_overrides(
            module,
            info,
            Some((stage, &asked.entry)),
            &constants.collect(),
        )
        .unwrap();
        let options = msl::Options {
            lang_version: (3, 1),
            fake_missing_bindings: true,
            bounds_check_policies: BoundsCheckPolicies::default(),
            zero_initialize_workgroup_memory: false,
            force_loop_bounding: false,
            emit_int_div_checks: false,
            ..msl::Options::default()
        };
        let pipeline = msl::PipelineOptions {
            entry_point: Some((stage, asked.entry.clone())),
            ..msl::PipelineOptions::default()
        };
        msl::write_string(&module, &info, &options, &pipeline)
            .unwrap()
            .0
    }
}

/// The rule that a translation breaks, if any.
fn fault(msl: &str) -> Option<String> {
    // Code of bounds checks.
    for check in [
        "metal::min(unsigned(",
        "DefaultConstructible",
        "_buffer_sizes.",
    ] {
        if msl.contains(check) {
            return Some(format!("checks bounds: `{check}`"));
        }
    }
    for unneeded in [
        "__local_invocation_id == metal::uint3(0u)",
        "naga_div",
        "naga_mod",
        "loop_bound",
    ] {
        if msl.contains(unneeded) {
            return Some(format!("unneeded code: `{unneeded}`"));
        }
    }
    let indexed = |line: &&str| line.contains("simdgroup_") && line.contains("8x8 inner[");
    if let Some(line) = msl.lines().find(indexed) {
        return Some(format!("an array of matrices: `{}`", line.trim()));
    }
    // Functions begin at the margin and end with a brace there.
    let mut hot = None;
    for line in msl.lines() {
        if let Some(at) = line.find("hot_")
            && !line.starts_with(' ')
        {
            let name = line[at..].split('(').next().unwrap_or_default();
            hot = Some(name.to_owned());
        } else if line.starts_with('}') {
            hot = None;
        }
        if let Some(name) = &hot
            && ["while", "for("].iter().any(|word| line.contains(word))
        {
            return Some(format!("a loop in `{name}`"));
        }
    }
    None
}

/// A file name for an entry point in a variant of its source.
fn name_of(asked: &Asked) -> String {
    let features = variant_of(&asked.source).unwrap_or_default();
    let features: String = features.names().map(|name| format!("-{name}")).collect();
    format!("{}{features}.metal", asked.entry)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/msl")
}

#[test]
fn apple_s_translations_of_all_kernels_keep_the_rules_and_are_those_kept() {
    let variants = variants();
    let mut translator = Translator::default();
    let mut kept = BTreeMap::new();
    let mut faults = Vec::new();
    for asked in &variants {
        let msl = translator.msl(asked);
        if let Some(fault) = fault(&msl) {
            faults.push(format!("{} {:?}: {fault}", asked.entry, asked.constants));
        }
        kept.entry(name_of(asked)).or_insert(msl);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    let folder = folder();
    if std::env::var_os("KOVAR_BLESS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, msl) in &kept {
            fs::write(folder.join(name), msl).unwrap();
        }
    }
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(name, fs::read_to_string(&path).unwrap());
    }
    let names = |all: &BTreeMap<String, String>| all.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(&kept),
        names(&found),
        "KOVAR_BLESS=1 updates the kept translations"
    );
    for (name, msl) in &kept {
        assert!(
            found[name] == *msl,
            "{name} has changed; KOVAR_BLESS=1 updates the kept translations"
        );
    }
}

#[test]
fn what_is_supported_compiles_however_little_a_binding_holds() {
    let mut failures = Vec::new();
    let null = Null::with_caps(apple(Features::MATRICES), 1 << 30);
    let device = Masked::new(null, Features::NONE).with_largest_binding(1000);
    let options = QueueOptions::default();
    let backend = GpuBackend::with_device("gpu0", Arc::new(device), options).unwrap();
    for case in cases::all() {
        if let Err(failure) = compile_case(&backend, &case) {
            failures.push(format!("{}: {failure}", case.name()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn broken_rules_are_found() {
    let translate = |source: &str| {
        Translator::default().msl(&Asked {
            entry: "main".to_owned(),
            source: source.to_owned(),
            constants: Vec::new(),
        })
    };
    let loops = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        fn hot_sum(n: u32) -> u32 { var s = 0u; for (var i = 0u; i < n; i++) { s += x[i]; } return s; }
        @compute @workgroup_size(1) fn main() { x[0] = hot_sum(x[1]); }";
    assert_eq!(
        fault(&translate(loops)).as_deref(),
        Some("a loop in `hot_sum`")
    );
    let cold = loops.replace("hot_sum", "sum");
    assert_eq!(fault(&translate(&cold)), None);
    let checked = "if (metal::min(unsigned(i), 3u)) {}";
    assert!(fault(checked).is_some_and(|fault| fault.starts_with("checks bounds")));
    let zeroed = "if (metal::all(__local_invocation_id == metal::uint3(0u))) {";
    assert!(fault(zeroed).is_some());
    let array = "struct type_5 { metal::simdgroup_float8x8 inner[4]; };";
    assert!(fault(array).is_some_and(|fault| fault.starts_with("an array of matrices")));
}
