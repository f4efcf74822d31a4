// Elements as plain bits: several in a word, or one in a word or in two.

import package::shared::out::out;

// A word has 2^SHIFT elements.
override SHIFT: u32 = 0u;
// 1 for elements of 8 bytes. An invocation moves one of their two words.
override SPLIT: u32 = 0u;

const BITS_MASK = 0xffffffffu;

// The bits of element `i`, given its word.
fn bits_of(word: u32, i: u32) -> u32 {
    let width = 32u >> SHIFT;
    return (word >> ((i & ((1u << SHIFT) - 1u)) * width)) & (BITS_MASK >> (32u - width));
}

// Writes element `i`.
@if(!narrow)
fn put_bits(i: u32, bits: u32) {
    out[i] = bits;
}
@if(narrow)
fn put_bits(i: u32, bits: u32) {
    let width = 32u >> SHIFT;
    let position = (i & ((1u << SHIFT) - 1u)) * width;
    // The rest of the word belongs to other invocations and does not change here.
    atomicAnd(&out[i >> SHIFT], ~((BITS_MASK >> (32u - width)) << position));
    atomicOr(&out[i >> SHIFT], bits << position);
}

// Writes the whole word that element `i` lies in.
@if(!narrow)
fn put_word(i: u32, word: u32) {
    out[i >> SHIFT] = word;
}
@if(narrow)
fn put_word(i: u32, word: u32) {
    atomicStore(&out[i >> SHIFT], word);
}
