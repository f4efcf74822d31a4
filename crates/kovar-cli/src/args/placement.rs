use std::sync::Arc;

use clap::{Args, ValueEnum};
use kovar::runtime::{DeviceId, Homes, Pattern, Preference, Thresholds};
use kovar::{Backend, DeviceInfo, DeviceKind, Graph, Policy, Storage, StorageKind};

use super::{RatesArgs, bytes, whole};
use crate::diagnostics::{UsageError, note};

/// How several devices share the work.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Placement")]
pub struct PlacementArgs {
    /// Place the tensors whose names match PATTERN (`*` any characters, `?` one) on DEVICE,
    /// together with the operations that use them: `--place 'blk.*.ffn_*=cpu'`. The first match
    /// applies.
    #[arg(long, value_name = "PATTERN=DEVICE", value_parser = assignment)]
    pub place: Vec<(String, String)>,

    /// Place the first N layers on the first device that is not a CPU, the rest on the CPU.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0u32..=4096))]
    pub gpu_layers: Option<u32>,

    /// Limit the memory on DEVICE to SIZE (`6GiB`, `500MiB`): layers that do not fit go to the next
    /// device.
    #[arg(long, value_name = "DEVICE=SIZE", value_parser = budget)]
    pub budget: Vec<(String, u64)>,

    /// Keep the weights that match PATTERN in host memory and upload them to their device layer by
    /// layer in every step [default pattern: all].
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true,
          default_missing_value = "*")]
    pub stream: Vec<String>,

    /// Number of prompt tokens that go through the devices together. With layers on several GPUs, a
    /// smaller number keeps all of them busy [default: 512].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1u32..=512))]
    pub micro_batch: Option<u32>,

    /// Kind of device to prefer: cpu, gpu, or auto for the one that is estimated to be faster.
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub policy: Kind,

    /// Run matrix products, convolutions and attention with fewer than N floating-point operations
    /// on the CPU.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = whole(0..=u64::MAX))]
    pub min_matmul_ops: u64,

    /// Run other operations whose results have fewer than N elements on the CPU.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = whole(0..=usize::MAX))]
    pub min_elements: usize,

    /// Fail instead of printing a warning if a --place cannot be followed, or if a --place or
    /// --stream matches nothing.
    #[arg(long)]
    pub strict: bool,

    /// Run every operation separately, even if a device has one kernel for several operations.
    #[arg(long)]
    pub no_fusion: bool,

    /// Verify every plan before using it.
    #[arg(long)]
    pub check_plan: bool,

    #[command(flatten)]
    pub rates: RatesArgs,
}

/// A kind of device to prefer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The one that is estimated to be faster.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// Any other device.
    Gpu,
}

impl PlacementArgs {
    /// The devices of weights and caches.
    ///
    /// # Errors
    /// A device that is not one of `devices`.
    pub fn homes(&self, devices: &[Arc<dyn Backend>]) -> anyhow::Result<Homes> {
        let find = |message: &str, matches: &dyn Fn(&DeviceInfo) -> bool| {
            let mut ids = DeviceId::all(devices.len()).zip(devices);
            let found = ids.find(|(_, device)| matches(device.info()));
            found.map(|(id, _)| id).ok_or_else(|| {
                let known = devices.iter().map(|device| device.info().id.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                UsageError::new(format!("{message} the devices in use: {known}"))
            })
        };
        let named = |name: &str| {
            let message = format!("`{name}` is not one of");
            find(&message, &|device| device.id == name)
        };
        let of_kind = |cpu: bool| {
            let message = "--gpu-layers needs a CPU and a device of another kind among";
            find(message, &|device| (device.kind == DeviceKind::Cpu) == cpu)
        };
        let mut homes = match self.gpu_layers {
            None => Homes::all_on(DeviceId::FIRST),
            Some(_) => Homes::all_on(of_kind(true)?),
        };
        for (pattern, device) in &self.place {
            homes = homes.pin(pattern, named(device)?);
        }
        for layer in 0..self.gpu_layers.unwrap_or(0) {
            homes = homes.pin(&format!("blk.{layer}.*"), of_kind(false)?);
        }
        for (device, bytes) in &self.budget {
            homes = homes.budget(named(device)?, *bytes);
        }
        Ok(self
            .stream
            .iter()
            .fold(homes, |homes, pattern| homes.stream(pattern)))
    }

    /// Warns about options without effect: patterns that match nothing in `graphs`, and a
    /// preference for a kind of device that is not among `devices`.
    ///
    /// # Errors
    /// A usage error for a pattern, with --strict.
    pub fn check<'g>(
        &self,
        graphs: impl IntoIterator<Item = &'g Graph>,
        devices: &[Arc<dyn Backend>],
        quiet: bool,
    ) -> Result<(), UsageError> {
        let graphs = graphs.into_iter();
        let storages: Vec<&Storage> = graphs.flat_map(Graph::storages).collect();
        let matches = |pattern: &str, kind: Option<StorageKind>| {
            let pattern = Pattern::new(pattern);
            let mut storages = storages.iter();
            storages.any(|storage| {
                kind.is_none_or(|kind| storage.kind == kind) && pattern.matches(&storage.name)
            })
        };
        let places = self.place.iter().map(|(pattern, _)| pattern);
        let places = places.filter(|pattern| !matches(pattern, None));
        let places = places.map(|pattern| format!("--place `{pattern}` matches no tensor"));
        let streams = self.stream.iter();
        let streams = streams.filter(|pattern| !matches(pattern, Some(StorageKind::Weight)));
        let streams = streams.map(|pattern| format!("--stream `{pattern}` matches no weight"));
        for message in places.chain(streams) {
            if self.strict {
                return Err(UsageError::new(message));
            }
            if !quiet {
                note(format_args!("warning: {message}"));
            }
        }
        let is_cpu = |device: &Arc<dyn Backend>| device.info().kind == DeviceKind::Cpu;
        if self.policy == Kind::Gpu && devices.iter().all(is_cpu) && !quiet {
            note("warning: --policy gpu has no effect: there is no GPU among the devices in use");
        }
        Ok(())
    }

    /// The policy for compiling graphs for `devices`.
    pub fn policy(&self, devices: &[Arc<dyn Backend>]) -> Policy {
        let mut policy = Policy::default();
        if devices.len() > 1 {
            policy.rates = self.rates.of(devices);
        }
        policy.preference = match self.policy {
            Kind::Auto => Preference::Time,
            Kind::Cpu => Preference::Cpu,
            Kind::Gpu => Preference::Gpu,
        };
        policy.thresholds = Thresholds {
            min_product_flops: self.min_matmul_ops,
            min_elements: self.min_elements,
        };
        policy.strict = self.strict;
        policy.fuse = !self.no_fusion;
        policy.check_plan |= self.check_plan;
        policy
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (pattern, device) = text.rsplit_once('=').ok_or("expected PATTERN=DEVICE")?;
    if pattern.is_empty() || device.is_empty() {
        return Err("expected PATTERN=DEVICE".to_owned());
    }
    Ok((pattern.to_owned(), device.to_owned()))
}

fn budget(text: &str) -> Result<(String, u64), String> {
    let (device, size) =
        assignment(text).map_err(|_| "expected DEVICE=SIZE, for example gpu0=6GiB")?;
    Ok((device, bytes(&size)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_hold_an_equals_sign() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(assignment("a=b=cpu"), Ok(pair("a=b", "cpu")));
        assert!(assignment("cpu").is_err() && assignment("=cpu").is_err());
        assert_eq!(budget("cpu=2KiB"), Ok(("cpu".to_owned(), 2048)));
    }
}
