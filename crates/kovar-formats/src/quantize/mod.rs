//! Conversion of model files to other number types.
//!
//! [`plan`] chooses the type of each tensor by a [`Mix`] and [`TensorRule`]s. [`Plan::write_file`]
//! converts one tensor at a time in chunks, so memory holds only some chunks of one tensor.

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
