//! Text as it is generated: whole characters from the bytes of tokens, and stop strings.

mod stop;
mod utf8;

pub use stop::{EmptyStopString, StopMatch, StopStrings};
pub use utf8::Utf8Stream;
