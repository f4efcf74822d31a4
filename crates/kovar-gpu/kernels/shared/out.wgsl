// The result. With the feature `narrow` its elements have 16 bits, and two invocations may write
// halves of one word.

import package::shared::element::{encode, word_of};

override OUT_DTYPE: u32 = 0u;
// Elements of a row that an invocation writes at once. If they are more than one, they fill a word.
override PER: u32 = 1u;

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
    // The other half belongs to another invocation and does not change here.
    atomicAnd(&out[i >> 1u], ~(0xffffu << shift));
    atomicOr(&out[i >> 1u], encode(value, OUT_DTYPE) << shift);
}

// Writes elements `i` and `i + 1`; `i` is even.
@if(!narrow)
fn put_pair(i: u32, first: f32, second: f32) {
    out[i] = bitcast<u32>(first);
    out[i + 1u] = bitcast<u32>(second);
}
@if(narrow)
fn put_pair(i: u32, first: f32, second: f32) {
    atomicStore(&out[i >> 1u], encode(first, OUT_DTYPE) | (encode(second, OUT_DTYPE) << 16u));
}
