//! Transposed convolution over two dimensions: the adjoint of a convolution.

use super::{Entry, convolution};

pub(super) static ENTRY: Entry = convolution::ENTRY;
