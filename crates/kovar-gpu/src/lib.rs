//! The GPU backend of kovar: one kernel source for Metal, Vulkan and DirectX 12.
//!
//! Only `seam` uses a graphics API. The table in `ops` plans each node into dispatches. A kernel
//! holds the dispatches of a segment with their pipelines, a program adds bind groups, and the
//! queue records and submits them.

mod adapters;
mod backend;
mod kernel;
mod memory;
mod ops;
mod pipelines;
mod profile;
mod program;
mod queue;
mod scratch;
mod seam;
#[cfg(test)]
mod snapshots;
mod view;

pub use adapters::{AdapterInfo, FeatureState, GpuLimits, Gpus, Transfers};
pub use backend::{Capture, GpuBackend, GpuError, GpuOptions};
pub use kernel::{Features, UnknownFeature};
pub use profile::{DispatchTime, KernelTime, Profile, chrome_trace};
pub use seam::{MatrixElement, MatrixShape, MemoryBudget};
