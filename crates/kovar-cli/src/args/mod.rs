//! Options that several commands share.

mod device;
mod generation;
mod mix;
mod model;
mod number;
mod sampling;

pub use device::{DeviceArgs, devices_error};
pub use generation::GenerationArgs;
pub use mix::mix;
pub use model::{ModelArgs, ModelSource, RunArgs};
pub use number::whole;
pub use sampling::SamplingArgs;
