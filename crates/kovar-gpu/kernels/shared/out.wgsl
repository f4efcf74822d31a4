// The result. With the feature `narrow` its elements are of 16 bits, and invocations may share a word.

import package::shared::element::{encode, word_of};

override OUT_DTYPE: u32 = 0u;

@if(!narrow) @group(0) @binding(1) var<storage, read_write> out: array<u32>;
@if(narrow) @group(0) @binding(1) var<storage, read_write> out: array<atomic<u32>>;

// Writes element `i`.
@if(!narrow)
fn put(i: u32, value: f32) {
    out[i] = bitcast<u32>(value);
}
@if(narrow)
fn put(i: u32, value: f32) {
    let shift = (i & 1u) << 4u;
    // The other half is a neighbour's and never changes here.
    atomicAnd(&out[i >> 1u], ~(0xffffu << shift));
    atomicOr(&out[i >> 1u], encode(value, OUT_DTYPE) << shift);
}

// Writes elements `i`, which is even, and `i + 1`.
@if(!narrow)
fn put_pair(i: u32, first: f32, second: f32) {
    out[i] = bitcast<u32>(first);
    out[i + 1u] = bitcast<u32>(second);
}
@if(narrow)
fn put_pair(i: u32, first: f32, second: f32) {
    atomicStore(&out[i >> 1u], encode(first, OUT_DTYPE) | (encode(second, OUT_DTYPE) << 16u));
}
