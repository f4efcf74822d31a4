//! The GPU backend of kovar: one kernel source for Metal, Vulkan and DirectX 12.
//!
//! `seam` is all that the rest knows of a graphics API. A node is planned into dispatches by its
//! row of the table in `ops`; a program has their pipelines and bind groups, made once, and the
//! queue records and submits them.

mod backend;
mod kernel;
mod memory;
mod ops;
mod pipelines;
mod program;
mod queue;
mod scratch;
mod seam;
mod view;

pub use backend::{GpuBackend, GpuError, GpuOptions};
pub use kernel::Features;
