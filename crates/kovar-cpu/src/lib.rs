//! The CPU backend of kovar.

mod backend;
pub mod bandwidth;
pub mod buffer;
mod machine;
mod memory;
mod ops;
pub mod pack;
pub mod pool;
pub mod product;
mod program;
mod queue;
mod scratch;
pub mod simd;
mod vector;

pub use backend::{CpuBackend, CpuError, CpuOptions};
