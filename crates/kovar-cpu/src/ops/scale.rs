//! Multiplication by a constant; the kernel is that of [`unary`](super::unary).

pub(super) use super::unary::ENTRY;
