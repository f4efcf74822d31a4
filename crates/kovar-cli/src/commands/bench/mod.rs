mod gpu;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use kovar::cpu::bandwidth::measure_read_bandwidth;
use kovar::cpu::pool::ThreadPool;
use kovar::{LogitsOf, Model, ModelFile};
use serde::Serialize;

use self::gpu::{Gpus, Timed, TimedReport, write_trace};
use crate::args::{RunArgs, whole};
use crate::diagnostics::{UsageError, note};
use crate::output::Table;
use crate::{format, load, output, progress};

/// Measure how fast a model runs.
///
/// The tests are those of llama-bench: pp512 evaluates a prompt of 512 tokens at once, tg128
/// evaluates 128 tokens one by one, both from an empty context. The results are tokens per second,
/// as mean and standard deviation over the repeats, after one warm-up run. Each token of tg reads
/// all weights once, so tg is also shown as a share of the memory bandwidth, which is measured
/// first.
///
/// --profile additionally times each GPU kernel of the prompt and of one more token; --capture
/// records one token with a graphics debugger.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar bench
  kovar bench -m model.gguf -t 2
  kovar bench -m model.gguf -p 0 -n 256 -r 10 --json
  kovar bench -m model.gguf --device gpu0,cpu --profile trace.json
  renderdoccmd capture -w kovar bench --device gpu0,cpu -r 1 --capture")]
pub struct Bench {
    /// Number of tokens of the prompt; 0 skips the test.
    #[arg(short = 'p', long, value_name = "N", default_value_t = 512,
          allow_negative_numbers = true, value_parser = whole(0..=usize::MAX))]
    n_prompt: usize,

    /// Number of tokens evaluated one by one; 0 skips the test.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128,
          allow_negative_numbers = true, value_parser = whole(0..=usize::MAX))]
    n_gen: usize,

    /// Number of measured repeats.
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5,
          allow_negative_numbers = true, value_parser = whole(1..=u32::MAX))]
    repeats: u32,

    /// Show the time of each operation and kernel on the GPUs, by their own clocks. With FILE, also
    /// write the individual kernels there as a Chrome trace, for chrome://tracing and
    /// ui.perfetto.dev.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    profile: Option<Option<PathBuf>>,

    /// Record one token with the graphics debugger that started kovar: RenderDoc for Vulkan, Xcode
    /// for Metal (with METAL_CAPTURE_ENABLED=1).
    #[arg(long)]
    capture: bool,

    /// Print JSON with the result of each repeat.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    run: RunArgs,
}

#[derive(Serialize)]
struct Report {
    model: String,
    model_bytes: usize,
    parameters: u64,
    device: String,
    threads: Option<usize>,
    features: Vec<String>,
    /// `None` for a recurrent model.
    cache_type: Option<&'static str>,
    weight_bytes_per_token: u64,
    read_bandwidth_bytes_per_second: f64,
    tests: Vec<Test>,
    /// The times of kernels, with --profile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<TimedReport>,
}

#[derive(Serialize)]
struct Test {
    test: String,
    tokens: usize,
    tokens_per_second: f64,
    standard_deviation: f64,
    samples: Vec<f64>,
    /// Bytes of weights read per second, divided by the bandwidth; only if each token reads all of
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth_share: Option<f64>,
}

impl Bench {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded, a device that fails.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let needed = self.n_prompt.max(self.n_gen);
        if needed == 0 {
            return Err(
                UsageError::new("-p and -n are both 0: there is nothing to measure").into(),
            );
        }
        if self.run.ctx.is_some_and(|ctx| (ctx as usize) < needed) {
            let message =
                format!("--ctx must be at least {needed}, the tokens of the longest test");
            return Err(UsageError::new(message).into());
        }
        let needed = u32::try_from(needed)
            .map_err(|_| UsageError::new(format!("{needed} tokens are too many")))?;
        self.run.ctx.get_or_insert(needed);

        let file = load::open(&self.run.model.model)?;
        let weight_bytes = weight_bytes_per_token(&file);
        let parameters = file.tensors().map(|tensor| tensor.elements() as u64).sum();
        let model_bytes = file.tensors().map(|tensor| tensor.size()).sum();
        let mut model = load::model(file, &self.run)?;
        let wanted = [
            ("--profile", self.profile.is_some()),
            ("--capture", self.capture),
        ];
        for (option, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
            Gpus::of(&model, option)?;
        }
        let info = model
            .session()
            .devices()
            .first()
            .context("there is no device")?
            .info()
            .clone();
        let bandwidth = bandwidth(info.threads.unwrap_or(1))?;

        let mut tests = Vec::new();
        if self.n_prompt > 0 {
            let tokens = tokens(self.n_prompt, model.vocab_len());
            let samples = self.samples("pp", &mut model, |model, logits| {
                model.eval(&tokens, LogitsOf::Last, logits)
            })?;
            tests.push(test(
                format!("pp{}", self.n_prompt),
                self.n_prompt,
                &samples,
            ));
        }
        if self.n_gen > 0 {
            let tokens = tokens(self.n_gen, model.vocab_len());
            let samples = self.samples("tg", &mut model, |model, logits| {
                tokens
                    .iter()
                    .try_for_each(|&token| model.eval(&[token], LogitsOf::Last, logits))
            })?;
            let mut test = test(format!("tg{}", self.n_gen), self.n_gen, &samples);
            let rate = test.tokens_per_second * weight_bytes as f64;
            test.bandwidth_share = Some(rate / bandwidth);
            tests.push(test);
        }
        let timed = match &self.profile {
            Some(file) => self.profiled(&mut model, file.as_deref())?,
            None => Vec::new(),
        };
        if self.capture {
            let gpus = Gpus::of(&model, "--capture")?;
            model.truncate(0);
            gpus.captured(|| one_token(&mut model))?;
        }
        let report = Report {
            model: self.run.model.model.to_string(),
            model_bytes,
            parameters,
            device: info.id,
            threads: info.threads,
            features: info.features,
            cache_type: model.cache_dtype().map(|dtype| dtype.name()),
            weight_bytes_per_token: weight_bytes,
            read_bandwidth_bytes_per_second: bandwidth,
            tests,
            profiles: timed.iter().map(Timed::report).collect(),
        };
        if self.json {
            output::write_json(&report)?;
        } else {
            let profiles = timed.iter().map(Timed::text);
            output::write(&(text(&report) + &profiles.collect::<String>()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Times the kernels of the prompt, and of one token, after the prompt if there is one.
    fn profiled(&self, model: &mut Model, file: Option<&Path>) -> anyhow::Result<Vec<Timed>> {
        let gpus = Gpus::of(model, "--profile")?;
        gpus.note_others();
        if let Some(file) = file {
            File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        }
        model.truncate(0);
        let mut timed = Vec::new();
        if self.n_prompt > 0 {
            let tokens = tokens(self.n_prompt, model.vocab_len());
            let test = format!("pp{}", self.n_prompt);
            timed.extend(gpus.timed(&test, || {
                Ok(model.eval(&tokens, LogitsOf::Last, &mut Vec::new())?)
            })?);
        }
        if self.n_gen > 0 {
            // The context may be full after the prompt.
            model.truncate(self.n_prompt.saturating_sub(1));
            timed.extend(gpus.timed("tg1", || one_token(model))?);
        }
        if let Some(file) = file {
            write_trace(file, &timed)?;
            note(format_args!("the trace is in {}", file.display()));
        }
        Ok(timed)
    }

    /// The seconds of each run of `work` from an empty context, after one warm-up run.
    fn samples<E: std::error::Error + Send + Sync + 'static>(
        &self,
        name: &'static str,
        model: &mut Model,
        mut work: impl FnMut(&mut Model, &mut Vec<f32>) -> Result<(), E>,
    ) -> anyhow::Result<Vec<f64>> {
        let repeats = self.repeats as usize;
        let bar = progress::bar(name, repeats + 1);
        let mut logits = Vec::new();
        let mut samples = Vec::with_capacity(repeats);
        for run in 0..=repeats {
            model.truncate(0);
            let start = Instant::now();
            work(model, &mut logits)?;
            if run > 0 {
                samples.push(start.elapsed().as_secs_f64());
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(samples)
    }
}

/// Evaluates one token; any token will do.
fn one_token(model: &mut Model) -> anyhow::Result<()> {
    Ok(model.eval(&[0], LogitsOf::Last, &mut Vec::new())?)
}

fn bandwidth(threads: usize) -> anyhow::Result<f64> {
    let spinner = progress::spinner("measuring the memory bandwidth".to_owned());
    let pool = ThreadPool::new(threads)?;
    let bandwidth = measure_read_bandwidth(&pool)?;
    spinner.finish_and_clear();
    Ok(bandwidth)
}

/// Tokens spread over the vocabulary. Their values do not affect the speed.
fn tokens(count: usize, vocab_len: usize) -> Vec<u32> {
    // A prime near 2^32 divided by the golden ratio spreads them.
    const STRIDE: u64 = 2_654_435_761;
    let spread = |at: u64| (at.wrapping_mul(STRIDE) % vocab_len.max(1) as u64) as u32;
    (0..count as u64).map(spread).collect()
}

/// Bytes of the weights that one token reads: all of them, except that only a row is read of an
/// embedding table that is not also the output matrix.
fn weight_bytes_per_token(file: &ModelFile) -> u64 {
    const EMBEDDINGS: &str = "token_embd.weight";
    let is_tied = file.tensor("output.weight").is_none();
    let bytes = file.tensors().map(|tensor| {
        let bytes = tensor.size() as u64;
        match tensor.dims().first() {
            Some(&rows) if tensor.name() == EMBEDDINGS && !is_tied => bytes / rows as u64,
            _ => bytes,
        }
    });
    bytes.sum()
}

fn test(name: String, tokens: usize, seconds: &[f64]) -> Test {
    let samples: Vec<f64> = seconds
        .iter()
        .map(|seconds| tokens as f64 / seconds)
        .collect();
    let (mean, deviation) = mean_and_deviation(&samples);
    Test {
        test: name,
        tokens,
        tokens_per_second: mean,
        standard_deviation: deviation,
        samples,
        bandwidth_share: None,
    }
}

/// The mean and the sample standard deviation, 0 for fewer than 2 samples.
fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    if samples.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

fn text(report: &Report) -> String {
    let threads = report.threads.map_or(String::new(), |n| {
        format!(", {}", format::plural(n, "thread"))
    });
    let cache = report.cache_type;
    let cache = cache.map_or("recurrent".to_owned(), |dtype| format!("cache {dtype}"));
    let mut text = format!(
        "{}: {} of weights, {} parameters\n{}{threads}, {}; {}; memory reads at {:.1} GB/s\n\n",
        report.model,
        format::bytes(report.model_bytes as u64),
        format::count(report.parameters),
        report.device,
        report.features.join(", "),
        cache,
        report.read_bandwidth_bytes_per_second / 1e9,
    );
    let mut table = Table::new(&["test", ">tokens/s", ">±", ">of memory bandwidth"]);
    for test in &report.tests {
        let share = test.bandwidth_share;
        table.row([
            test.test.clone(),
            format!("{:.2}", test.tokens_per_second),
            format!("{:.2}", test.standard_deviation),
            share.map_or(String::new(), |share| format!("{:.0} %", share * 100.0)),
        ]);
    }
    text.push_str(&table.render(""));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_the_sample_standard_deviation() {
        assert_eq!(mean_and_deviation(&[2.0, 4.0]), (3.0, 2f64.sqrt()));
        assert_eq!(mean_and_deviation(&[5.0]), (5.0, 0.0));
    }

    #[test]
    fn tokens_exist_and_differ() {
        let tokens = tokens(512, 2048);
        assert!(tokens.iter().all(|&token| token < 2048));
        let distinct: std::collections::HashSet<_> = tokens.iter().collect();
        assert!(distinct.len() > 400);
    }

    #[test]
    fn every_token_reads_all_of_tied_embeddings() {
        let file = kovar::Gguf::from_static(kovar::demo::Demo::LlamaStories.file()).unwrap();
        let file = ModelFile::from(file);
        let all: u64 = file.tensors().map(|tensor| tensor.size() as u64).sum();
        assert_eq!(weight_bytes_per_token(&file), all);
    }
}
