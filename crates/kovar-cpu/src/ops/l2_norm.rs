//! Euclidean normalisation; the kernel is that of [`norm`].

use super::fused::norm;
use super::{Entry, FLOATS};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile: norm::compile_alone,
};
