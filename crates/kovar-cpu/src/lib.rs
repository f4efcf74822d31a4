//! The CPU backend of kovar.

pub mod bandwidth;
pub mod buffer;
pub mod pack;
pub mod pool;
pub mod product;
pub mod simd;
