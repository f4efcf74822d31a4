//! Model files with other number types: which type each tensor gets, and the conversion.
//!
//! A [`Mix`] and [`TensorRule`]s choose the types ([`plan`]); [`Plan::write_file`] converts tensor by
//! tensor, so memory holds pieces of one tensor at a time.

mod convert;
mod error;
mod mix;
mod plan;
mod rule;

pub use error::QuantizeError;
pub use mix::Mix;
pub use plan::{Plan, TensorPlan, plan};
pub use rule::{RuleError, TensorRule};
