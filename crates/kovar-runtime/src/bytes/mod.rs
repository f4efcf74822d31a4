//! Sets and maps of byte positions.

mod intervals;
mod ranges;

pub(crate) use intervals::Intervals;
pub(crate) use ranges::RangeSet;
