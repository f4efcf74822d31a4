//! Options that are shared by several commands.

mod bias;
mod bytes;
mod device;
mod escape;
mod generation;
mod grammar;
mod ids;
mod mix;
mod model;
mod number;
mod placement;
mod rates;
mod sampling;

pub use bias::{Bias, BiasOf};
pub use bytes::bytes;
pub use device::{DeviceArgs, devices_error};
pub use escape::unescaped;
pub use generation::GenerationArgs;
pub use grammar::GrammarArgs;
pub use ids::TokenIds;
pub use mix::mix;
pub use model::{ModelArgs, ModelSource, RunArgs, cache_type};
pub use number::whole;
pub use placement::PlacementArgs;
pub use rates::RatesArgs;
pub use sampling::SamplingArgs;
