//! Gated activations.

use super::{Entry, binary};

pub(super) static ENTRY: Entry = binary::ENTRY;
