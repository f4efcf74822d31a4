// Elements as bits, whatever they mean: several in a word, or one in a word or two.

import package::shared::out::out;

// Elements in a word: 2^SHIFT. Those of 8 bytes are moved as pairs of words.
override SHIFT: u32 = 0u;

const BITS_MASK = 0xffffffffu;

// The bits of element `i` of those in `word`, which holds it.
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
    // The rest of the word is the neighbours' and never changes here.
    atomicAnd(&out[i >> SHIFT], ~((BITS_MASK >> (32u - width)) << position));
    atomicOr(&out[i >> SHIFT], bits << position);
}

// Writes all elements of the word of element `i`.
@if(!narrow)
fn put_word(i: u32, word: u32) {
    out[i >> SHIFT] = word;
}
@if(narrow)
fn put_word(i: u32, word: u32) {
    atomicStore(&out[i >> SHIFT], word);
}
