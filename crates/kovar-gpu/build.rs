//! Composes each kernel of `kernels/` with the shared modules that it imports, once for every set
//! of the features that they ask for with `@if`, into a table of WGSL texts.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use wesl::{CompileOptions, ManglerKind, Wesl};

/// The features that kernels may ask for, in the order of their bits in `kernel::Features`.
const FEATURES: [&str; 6] = ["subgroups", "f16", "matrices", "narrow", "wide", "half"];

fn main() {
    if let Err(error) = run() {
        // Errors of WESL show the place over several lines.
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    let folder = Path::new("kernels");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wgsl")
        {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.push(stem.ok_or("a kernel's name is not text")?.to_owned());
        }
    }
    names.sort();
    let mut table = String::from("&[\n");
    for name in &names {
        let asked = asked_features(folder, name)?;
        write!(
            table,
            "    Source {{ name: {name:?}, features: {asked}, texts: &["
        )?;
        for features in subsets(asked) {
            let text = compose(folder, name, features)?;
            write!(table, "({features}, {text:?}), ")?;
        }
        table.push_str("] },\n");
    }
    table.push_str("]\n");
    let out = Path::new(&env::var("OUT_DIR")?).join("sources.rs");
    fs::write(out, table)?;
    Ok(())
}

/// The features that a kernel or a module that it imports asks for, as bits.
fn asked_features(folder: &Path, kernel: &str) -> Result<u8, Box<dyn Error>> {
    let mut seen = BTreeSet::new();
    let mut paths = vec![folder.join(format!("{kernel}.wgsl"))];
    let mut features = 0;
    while let Some(path) = paths.pop() {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        for (bit, feature) in FEATURES.iter().enumerate() {
            if text.contains(&format!("@if({feature})"))
                || text.contains(&format!("@if(!{feature})"))
            {
                features |= 1 << bit;
            }
        }
        for import in text.split("package::shared::").skip(1) {
            let end = import.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let module = &import[..end.unwrap_or(import.len())];
            if seen.insert(module.to_owned()) {
                paths.push(folder.join("shared").join(format!("{module}.wgsl")));
            }
        }
    }
    Ok(features)
}

fn subsets(bits: u8) -> impl Iterator<Item = u8> {
    (0..=bits).filter(move |subset| subset & !bits == 0)
}

fn compose(folder: &Path, kernel: &str, features: u8) -> Result<String, Box<dyn Error>> {
    let mut compiler = Wesl::new(folder);
    compiler.set_options(CompileOptions {
        // It knows neither subgroups nor cooperative matrices; naga validates the result.
        validate: false,
        keep_root: false,
        ..CompileOptions::default()
    });
    compiler.set_mangler(ManglerKind::None);
    for (bit, feature) in FEATURES.iter().enumerate() {
        compiler.set_feature(feature, features & 1 << bit != 0);
    }
    let module = format!("package::{kernel}")
        .parse()
        .map_err(|e| format!("{kernel}: {e}"))?;
    let composed = compiler
        .compile(&module)
        .map_err(|e| format!("{kernel}.wgsl: {e}"))?;
    Ok(composed.to_string())
}
