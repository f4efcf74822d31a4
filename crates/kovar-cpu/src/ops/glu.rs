//! Gated activations.

use super::{Entry, FLOATS, binary};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile: |resolver, node| binary::compile_with(resolver, node, resolver.shared.vector.swiglu),
};
