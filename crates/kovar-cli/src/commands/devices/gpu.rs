//! The properties of a GPU in `kovar devices`.

use kovar::gpu::{AdapterInfo, FeatureState, MatrixElement};
use serde::Serialize;

use crate::format;

/// Properties that only GPUs have.
#[derive(Serialize)]
pub struct Gpu {
    kind: &'static str,
    budget: Option<Budget>,
    limits: Limits,
    /// The minimum and maximum number of invocations of a subgroup.
    subgroup_sizes: Option<(u32, u32)>,
    matrices: Vec<Matrix>,
    features: Vec<Feature>,
    timestamps: bool,
    unified_memory: bool,
    capabilities: Capabilities,
}

/// Memory, in bytes.
#[derive(Serialize)]
struct Budget {
    available: u64,
    used: u64,
}

#[derive(Serialize)]
struct Limits {
    buffer_bytes: u64,
    binding_bytes: u64,
    binding_alignment: u64,
    workgroups: u32,
    workgroup_size: u32,
    workgroup_bytes: u32,
}

#[derive(Serialize)]
struct Matrix {
    m: u32,
    n: u32,
    k: u32,
    operands: &'static str,
    sums: &'static str,
}

#[derive(Serialize)]
struct Feature {
    name: &'static str,
    on: bool,
    /// The reason if it is off.
    why: Option<&'static str>,
}

#[derive(Serialize)]
struct Capabilities {
    #[serde(rename = "async")]
    asynchronous: bool,
    host_buffer: bool,
    from_host_ptr: bool,
    events: bool,
}

fn element(element: MatrixElement) -> &'static str {
    match element {
        MatrixElement::F32 => "f32",
        MatrixElement::F16 => "f16",
        MatrixElement::I32 => "i32",
        MatrixElement::U32 => "u32",
        _ => "other",
    }
}

impl From<&AdapterInfo> for Gpu {
    fn from(info: &AdapterInfo) -> Self {
        let matrices = info.matrices.iter().map(|shape| Matrix {
            m: shape.m,
            n: shape.n,
            k: shape.k,
            operands: element(shape.inputs),
            sums: element(shape.result),
        });
        let features = info.features.iter().map(|&(name, state)| Feature {
            name,
            on: state == FeatureState::On,
            why: match state {
                FeatureState::On => None,
                FeatureState::NotOffered => Some("not offered by the driver"),
                FeatureState::Masked => Some("masked by --gpu-features"),
                _ => Some("unknown"),
            },
        });
        Self {
            kind: info.kind,
            budget: info.budget.map(|memory| Budget {
                available: memory.budget,
                used: memory.used,
            }),
            limits: Limits {
                buffer_bytes: info.limits.max_buffer_bytes,
                binding_bytes: info.limits.max_binding_bytes,
                binding_alignment: info.limits.binding_alignment,
                workgroups: info.limits.max_workgroups,
                workgroup_size: info.limits.max_workgroup_size,
                workgroup_bytes: info.limits.workgroup_bytes,
            },
            subgroup_sizes: info.subgroup_sizes,
            matrices: matrices.collect(),
            features: features.collect(),
            timestamps: info.timestamps,
            unified_memory: info.unified_memory,
            capabilities: Capabilities {
                asynchronous: info.transfers.asynchronous,
                host_buffer: info.transfers.host_buffer,
                from_host_ptr: info.transfers.from_host_ptr,
                events: info.transfers.events,
            },
        }
    }
}

impl Gpu {
    /// Whether it is a software renderer on the CPU.
    pub fn is_software(&self) -> bool {
        self.kind == "software"
    }

    /// The names of the features that are on.
    pub fn features(&self) -> Vec<String> {
        let on = self.features.iter().filter(|feature| feature.on);
        on.map(|feature| feature.name.to_owned()).collect()
    }

    /// The rows below its memory and driver: titles and texts.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let feature = |feature: &Feature| match feature.why {
            None => format!("{} on", feature.name),
            Some(why) => format!("{} off ({why})", feature.name),
        };
        let matrix = |shape: &Matrix| {
            let Matrix {
                m,
                n,
                k,
                operands,
                sums,
            } = shape;
            format!("{m}x{n}x{k} {operands}, sums {sums}")
        };
        let capabilities = [
            ("async", self.capabilities.asynchronous),
            ("host_buffer", self.capabilities.host_buffer),
            ("from_host_ptr", self.capabilities.from_host_ptr),
            ("events", self.capabilities.events),
        ];
        let capability = |(name, has)| format!("{name} {}", yes(has));
        vec![
            ("kind", self.kind.to_owned()),
            (
                "budget",
                self.budget.as_ref().map_or("unknown".to_owned(), |budget| {
                    let [available, used] = [budget.available, budget.used].map(format::bytes);
                    format!("{available}, {used} of it used by this program")
                }),
            ),
            ("unified", yes(self.unified_memory)),
            ("features", joined(self.features.iter().map(feature))),
            (
                "subgroups",
                self.subgroup_sizes
                    .map_or("none".to_owned(), |sizes| match sizes {
                        (fewest, most) if fewest == most => format!("of {most}"),
                        (fewest, most) => format!("of {fewest} to {most}"),
                    }),
            ),
            ("matrices", joined(self.matrices.iter().map(matrix))),
            ("timestamps", yes(self.timestamps)),
            (
                "transfers",
                joined(capabilities.into_iter().map(capability)),
            ),
            (
                "limits",
                format!(
                    "buffers of {}, bindings of {} aligned to {}; workgroups of {} invocations and \
                     {}, {} per dimension",
                    format::bytes(self.limits.buffer_bytes),
                    format::bytes(self.limits.binding_bytes),
                    format::bytes(self.limits.binding_alignment),
                    self.limits.workgroup_size,
                    format::bytes(self.limits.workgroup_bytes.into()),
                    self.limits.workgroups,
                ),
            ),
        ]
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join("; ")
    }
}
