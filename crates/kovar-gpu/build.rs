//! Composes each kernel of `kernels/` with the shared modules that it imports, once for every set
//! of the features that they ask for with `@if`, into a table of WGSL texts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use wesl::{CompileOptions, ManglerKind, ModulePath, ResolveError, Resolver, Wesl};

/// The features that kernels may ask for, in the order of their bits in `kernel::Features`.
const FEATURES: [&str; 6] = ["subgroups", "f16", "matrices", "narrow", "wide", "half"];

/// The template that a shared module is made of, and the letter of its operand. Operand `a` has
/// number 0 and binding 2.
fn template_of(module: &str) -> Option<(&'static str, char)> {
    let (template, operand) = match module.strip_prefix("factor_") {
        Some(operand) => ("factor_operand", operand),
        None => ("operand", module),
    };
    match operand.as_bytes() {
        [letter @ b'a'..=b'f'] => Some((template, char::from(*letter))),
        _ => None,
    }
}

/// Finds modules in `kernels/`.
struct Modules;

impl Modules {
    fn text(path: &[String]) -> Result<String, String> {
        let (folder, name, template) = match path {
            [name] => ("kernels", name, None),
            [folder, name] if folder == "shared" => ("kernels/shared", name, template_of(name)),
            _ => return Err(format!("no module {path:?}")),
        };
        let file = template.map_or(name.as_str(), |(template, _)| template);
        let file = Path::new(folder).join(file).with_extension("wgsl");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(match template {
            Some((_, letter)) => instance(&text, letter),
            None => text,
        })
    }
}

impl Resolver for Modules {
    fn resolve_source<'a>(&'a self, path: &ModulePath) -> Result<Cow<'a, str>, ResolveError> {
        let text = Self::text(&path.components);
        text.map(Cow::Owned)
            .map_err(|e| ResolveError::ModuleNotFound(path.clone(), e))
    }
}

/// A template with an operand's letter, number and binding in place of their names.
fn instance(template: &str, letter: char) -> String {
    let number = u32::from(letter) - u32::from('a');
    template
        .replace("OPERAND_BINDING", &(number + 2).to_string())
        .replace("OPERAND_NUMBER", &format!("{number}u"))
        .replace("OPERAND", &letter.to_uppercase().to_string())
        .replace("operand", &letter.to_string())
}

fn main() {
    if let Err(error) = run() {
        // Errors of WESL show the source over several lines.
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    let mut names = Vec::new();
    for entry in fs::read_dir("kernels")? {
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
        let asked = asked_features(name)?;
        write!(
            table,
            "    Source {{ name: {name:?}, features: {asked}, texts: &["
        )?;
        for features in subsets(asked) {
            let text = compose(name, features)?;
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
fn asked_features(kernel: &str) -> Result<u8, Box<dyn Error>> {
    let mut seen = BTreeSet::new();
    let mut paths = vec![vec![kernel.to_owned()]];
    let mut features = 0;
    while let Some(path) = paths.pop() {
        let text = Modules::text(&path)?;
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
                paths.push(vec!["shared".to_owned(), module.to_owned()]);
            }
        }
    }
    Ok(features)
}

fn subsets(bits: u8) -> impl Iterator<Item = u8> {
    (0..=bits).filter(move |subset| subset & !bits == 0)
}

fn compose(kernel: &str, features: u8) -> Result<String, Box<dyn Error>> {
    let mut compiler = Wesl::new("kernels").set_custom_resolver(Modules);
    compiler.set_options(CompileOptions {
        // WESL knows neither subgroups nor cooperative matrices. Naga validates the result.
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
