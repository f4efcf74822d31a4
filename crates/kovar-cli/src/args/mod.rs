//! Options that several commands share.

mod bytes;
mod device;
mod generation;
mod mix;
mod model;
mod number;
mod sampling;

pub use bytes::bytes;
pub use device::{DeviceArgs, devices_error};
pub use generation::GenerationArgs;
pub use mix::mix;
pub use model::{DEMO_NAME, ModelArgs, ModelSource, RunArgs};
pub use number::whole;
pub use sampling::SamplingArgs;
