use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use kovar::quantize::{Mix, Plan, QuantizeError, SplitLimit, TensorRule, plan};
use kovar::text::architecture::read_architecture;
use kovar::{DType, ModelFile, ModelFormat};
use serde::Serialize;

use crate::args::{ModelSource, bytes, mix, whole};
use crate::diagnostics::{INTERRUPTED, UsageError, note};
use crate::interrupt::Interrupt;
use crate::{format, load, output, progress, text_input};

/// Convert a model to a GGUF file with other number types.
///
/// Reads GGUF files, also split ones, and Hugging Face folders.
///
/// --type is the number type of most matrices. Many types are mixes, which use more bits for some
/// layers; --dry-run shows the type of each tensor. The tensors get the same types as in llama.cpp
/// for most models: the output matrix is Q6_K if most matrices have fewer bits (Q8_0 for MXFP4);
/// vectors and norms are not converted; rows that are not whole blocks of 256 get a type with
/// blocks of 32, or F16. Differences from llama.cpp: importance matrices are not supported, so
/// Q2_K_S, for which llama.cpp requires one, is made without; Q3_K, Q4_K and Q5_K are not mixes;
/// the types do not depend on the size of the model or its number of experts. TQ2_0 suits only
/// models that were trained with weights of -1, 0 and 1.
///
/// Start from a file of plain floats: quantising twice loses precision.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar quantize model-f16.gguf model-q4_k_m.gguf --type Q4_K_M
  kovar quantize folder model-bf16.gguf --type BF16
  kovar quantize folder model.gguf --type Q8_0 --split-max-size 2G
  kovar quantize in.gguf out.gguf --type Q4_K_M --tensor '*.ffn_down.*=Q5_K'
  kovar quantize in.gguf out.gguf --type Q8_0 --tensor 'token_embd.weight=F16' --force
  kovar quantize in.gguf out.gguf --type Q4_K_M --dry-run")]
pub struct Quantize {
    /// The model to read, as for `generate -m`: a GGUF file (the first file of a split one), a
    /// folder, or the name of an embedded model.
    #[arg(value_name = "IN")]
    input: ModelSource,

    /// The GGUF file to write.
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The number type, or the mix of types.
    #[arg(short = 't', long = "type", value_name = "TYPE", ignore_case = true,
          value_parser = mix())]
    mix: Mix,

    /// Type of the matrices whose names match PATTERN (`*` any characters, `?` one). May be given
    /// several times; the first match applies.
    #[arg(long = "tensor", value_name = "PATTERN=TYPE")]
    rules: Vec<TensorRule>,

    /// Split the output into files with at most SIZE bytes of tensors each, for example 500M or 2G
    /// (M and G are 10^6 and 10^9). OUT.gguf becomes OUT-00001-of-00003.gguf and so on.
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_negative_numbers = true)]
    split_max_size: Option<u64>,

    /// Split the output into files with at most N tensors each.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1..=u32::MAX))]
    split_max_tensors: Option<u32>,

    /// Replace OUT if it exists.
    #[arg(short, long)]
    force: bool,

    /// Only show the types that the tensors would get.
    #[arg(long)]
    dry_run: bool,

    /// Number of threads [default: one per core].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1u16..=1024))]
    threads: Option<u16>,

    /// Print a JSON object with the sizes and the type of each tensor.
    #[arg(long)]
    json: bool,

    /// Print no notes on stderr.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Report {
    input: String,
    /// The files that are written.
    outputs: Vec<String>,
    r#type: &'static str,
    bytes_before: u64,
    bytes_after: u64,
    seconds: f64,
    tensors: Vec<Tensor>,
}

#[derive(Serialize)]
struct Tensor {
    name: String,
    from: &'static str,
    to: &'static str,
    fell_back: bool,
}

impl Quantize {
    /// Runs the command.
    ///
    /// # Errors
    /// A file that cannot be read, exists without --force or cannot be written; rules that do not
    /// apply; values that do not stay finite.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let file = load::open(&self.input)?;
        check_whole(&file).with_context(|| format!("cannot convert {}", self.input))?;
        let plan = plan(&file, self.mix, &self.rules).map_err(|error| match error {
            QuantizeError::UnusedRule { .. } | QuantizeError::PartialBlock { .. } => {
                UsageError::new(format!("invalid value for '--tensor': {error}")).into()
            }
            error => anyhow::Error::new(error),
        })?;
        if !self.dry_run {
            self.check_output(&file, &plan)?;
        }
        if !self.quiet {
            self.note_losses(&plan);
        }
        let started = Instant::now();
        if !self.dry_run && self.write(&plan)?.is_break() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let seconds = started.elapsed().as_secs_f64();
        self.print(&plan, seconds)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The files to be written.
    fn outputs(&self, plan: &Plan<'_>) -> Vec<PathBuf> {
        match self.split() {
            Some(limit) => plan.shard_paths(&self.output, limit),
            None => vec![self.output.clone()],
        }
    }

    fn split(&self) -> Option<SplitLimit> {
        let is_split = self.split_max_size.is_some() || self.split_max_tensors.is_some();
        is_split.then(|| SplitLimit {
            max_tensors: self.split_max_tensors.map(|most| most as usize),
            max_bytes: self.split_max_size,
        })
    }

    fn check_output(&self, file: &ModelFile, plan: &Plan<'_>) -> anyhow::Result<()> {
        self.outputs(plan)
            .iter()
            .try_for_each(|path| self.check_path(file, path))
    }

    fn check_path(&self, file: &ModelFile, path: &Path) -> anyhow::Result<()> {
        let name = path.display();
        if path.as_os_str() == text_input::DASH {
            let message = "OUT cannot be stdout (`./-` is a file of that name)";
            return Err(UsageError::new(message).into());
        }
        if let ModelSource::File(input) = &self.input
            && is_same_file(input, path)
        {
            return Err(UsageError::new(format!("{name} is both IN and OUT")).into());
        }
        if file.files().iter().any(|input| is_same_file(input, path)) {
            return Err(UsageError::new(format!("{name} is a file of IN, {}", self.input)).into());
        }
        output::check_path(path, self.force)
    }

    /// Writes the files; `Break` if Ctrl-C was pressed.
    fn write(&self, plan: &Plan<'_>) -> anyhow::Result<ControlFlow<()>> {
        let total = plan.tensors().iter().map(|t| t.tensor().size() as u64);
        let bar = progress::byte_bar("converting", total.sum());
        let interrupt = Interrupt::install()?;
        let _listening = interrupt.listen();
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or_else(cores, usize::from);
        let mut progress = |bytes| {
            bar.inc(bytes as u64);
            interrupt.flow()
        };
        let written = match self.split() {
            Some(limit) => plan
                .write_shards(&self.output, limit, threads, &mut progress)
                .map(drop),
            None => plan.write_file(&self.output, threads, &mut progress),
        };
        bar.finish_and_clear();
        match written {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(QuantizeError::Stopped) => {
                note("interrupted; nothing was written");
                Ok(ControlFlow::Break(()))
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot write {}", self.output.display()))
            }
        }
    }

    fn note_losses(&self, plan: &Plan<'_>) {
        let converted = || {
            plan.tensors()
                .iter()
                .filter(|t| t.dtype() != t.tensor().dtype())
        };
        // F32 holds the elements of every quantised type exactly.
        let again =
            converted().filter(|t| t.tensor().dtype().is_quantized() && t.dtype() != DType::F32);
        match again.count() {
            0 => {}
            count => note(format_args!(
                "warning: {} already quantised and will lose precision twice",
                match count {
                    1 => "1 tensor is".to_owned(),
                    _ => format!("{count} tensors are"),
                }
            )),
        }
        for tensor in plan.tensors().iter().filter(|t| t.fell_back()) {
            note(format_args!(
                "note: {} becomes {}: its rows of {} are not whole blocks of the type of the mix",
                tensor.tensor().name().escape_default(),
                tensor.dtype(),
                tensor.tensor().dims().last().copied().unwrap_or(1),
            ));
        }
    }

    fn print(&self, plan: &Plan<'_>, seconds: f64) -> anyhow::Result<()> {
        let tensors = plan.tensors().iter();
        let bytes_before: u64 = tensors.clone().map(|t| t.tensor().size() as u64).sum();
        let bytes_after: u64 = tensors.clone().map(|t| t.bytes() as u64).sum();
        if self.json {
            return output::write_json(&Report {
                input: self.input.to_string(),
                outputs: self
                    .outputs(plan)
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect(),
                r#type: self.mix.name(),
                bytes_before,
                bytes_after,
                seconds,
                tensors: tensors
                    .map(|t| Tensor {
                        name: t.tensor().name().to_owned(),
                        from: t.tensor().dtype().name(),
                        to: t.dtype().name(),
                        fell_back: t.fell_back(),
                    })
                    .collect(),
            });
        }
        if self.dry_run {
            let mut table = output::Table::new(&["name", "from", "to"]);
            for t in tensors {
                table.row([
                    t.tensor().name().escape_default().to_string(),
                    t.tensor().dtype().to_string(),
                    t.dtype().to_string(),
                ]);
            }
            output::write(&table.render(""))?;
        }
        if !self.quiet {
            note(format_args!(
                "{} -> {} of tensors as {} in {seconds:.1} s",
                format::bytes(bytes_before),
                format::bytes(bytes_after),
                self.mix
            ));
        }
        Ok(())
    }
}

/// Checks that a model that is converted to GGUF is supported: missing or unknown tensors would
/// make an unusable file.
fn check_whole(file: &ModelFile) -> anyhow::Result<()> {
    if !matches!(file.format(), ModelFormat::Gguf { .. }) {
        read_architecture(file)?;
    }
    Ok(())
}

/// Whether both paths lead to the same existing file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
