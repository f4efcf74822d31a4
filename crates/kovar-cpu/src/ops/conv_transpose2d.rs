//! Transposed convolution over two dimensions; the kernel is that of
//! [`convolution`](super::convolution).

pub(super) use super::convolution::ENTRY;
