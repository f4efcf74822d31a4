//! The GPU backend of kovar: one kernel source for Metal, Vulkan and DirectX 12.
//!
//! `seam` is all that the rest knows of a graphics API. A node is planned into dispatches by its
//! row of the table in `ops`; a program has their pipelines and bind groups, made once, and the
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

pub use adapters::{AdapterInfo, FeatureState, GpuLimits, Transfers, adapters};
pub use backend::{Capture, GpuBackend, GpuError, GpuOptions};
pub use kernel::{Features, UnknownFeature};
pub use profile::{DispatchTime, KernelTime, Profile, chrome_trace};
pub use seam::{MatrixElement, MatrixShape, MemoryBudget};
