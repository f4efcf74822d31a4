//! Sets and maps of byte positions.

mod intervals;
mod ranges;

pub(crate) use intervals::Intervals;
pub use ranges::RangeSet;
