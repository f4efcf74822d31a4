use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kovar::quantize::Mix;
use kovar::synth::{self, Shape, SynthError};

use crate::args::{mix, whole};
use crate::diagnostics::{INTERRUPTED, UsageError, note};
use crate::interrupt::Interrupt;
use crate::{format, output, progress};

/// Write a model file of a known shape with random weights, for benchmarks.
///
/// Shapes: Llama-3.2-1B, Llama-3.1-8B and SmolLM2-135M (llama), Qwen3-0.6B (qwen3), RWKV7-0.4B and
/// RWKV7-1.5B (rwkv7). The file has the metadata of the model and a meaningless vocabulary of the
/// same size, so that other programs can load it too. The weights are composed from a pool of
/// random blocks, so that large files are written quickly; speed does not depend on the values.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar synth --arch llama --shape Llama-3.2-1B --type Q4_K_M -o llama-1b.gguf
  kovar synth --shape Qwen3-0.6B --type Q8_0 -o qwen3.gguf && kovar bench -m qwen3.gguf")]
pub struct Synth {
    /// The architecture [default: that of the shape].
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,

    /// The model whose sizes are used.
    #[arg(long, value_name = "NAME", value_parser = shape)]
    shape: Shape,

    /// The number type, or mix of types, as for `quantize`.
    #[arg(short = 't', long = "type", value_name = "TYPE", ignore_case = true,
          value_parser = mix())]
    mix: Mix,

    /// The GGUF file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The seed of the random weights; one seed gives one file.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = whole(0..=u64::MAX))]
    seed: u64,

    /// Replace FILE if it exists.
    #[arg(short, long)]
    force: bool,
}

impl Synth {
    /// Runs the command.
    ///
    /// # Errors
    /// A shape of another architecture; a file that exists without --force or cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let (known, name) = (self.shape.architecture(), self.output.display());
        if let Some(arch) = self.arch.as_deref().filter(|&arch| arch != known) {
            let shape = self.shape;
            let message = format!("invalid value '{arch}' for '--arch': {shape} is {known}");
            return Err(UsageError::new(message).into());
        }
        output::check_path(&self.output, self.force)?;
        let bar = progress::byte_bar("writing", 0);
        let interrupt = Interrupt::install()?;
        let _listening = interrupt.listen();
        let mut bytes = 0;
        let mut progress = |written: u64, total: u64| {
            bytes = total;
            bar.set_length(total);
            bar.set_position(written);
            interrupt.flow()
        };
        let written = synth::write_file(
            &self.shape,
            self.mix,
            self.seed,
            &self.output,
            &mut progress,
        );
        bar.finish_and_clear();
        match written {
            Ok(()) => {
                note(format_args!(
                    "{name}: {} of random tensors",
                    format::bytes(bytes)
                ));
                Ok(ExitCode::SUCCESS)
            }
            Err(SynthError::Stopped) => {
                note("interrupted; nothing was written");
                Ok(ExitCode::from(INTERRUPTED))
            }
            Err(error) => Err(error).with_context(|| format!("cannot write {name}")),
        }
    }
}

fn shape(name: &str) -> Result<Shape, String> {
    Shape::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Shape::all().map(|shape| shape.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}
