//! Convolution over two dimensions.

use super::{Entry, convolution};

pub(super) static ENTRY: Entry = convolution::ENTRY;
