//! Model files with other number types: which type each tensor gets, and the conversion.
//!
//! A [`Mix`] and [`TensorRule`]s choose the types ([`plan`]); [`Plan::write_file`] converts tensor by
//! tensor, so memory holds pieces of one tensor at a time.

mod convert;
mod error;
mod mix;
mod plan;
mod rule;

pub(crate) use mix::fall_back;
pub(crate) use plan::{FILE_TYPE_KEY, QUANTIZATION_VERSION, QUANTIZATION_VERSION_KEY, mix_types};

pub use error::QuantizeError;
pub use mix::Mix;
pub use plan::{Plan, SplitLimit, TensorPlan, plan};
pub use rule::{RuleError, TensorRule};
