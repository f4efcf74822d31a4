// Elements of 32 or 16 bits in an array of words.

const F32 = 0u;
const F16 = 1u;
const BF16 = 2u;

// The word that holds element `i`.
fn word_of(i: u32, dtype: u32) -> u32 {
    return select(i >> 1u, i, dtype == F32);
}

// Element `i`, given its word.
fn decode(word: u32, i: u32, dtype: u32) -> f32 {
    if dtype == F32 {
        return bitcast<f32>(word);
    }
    let half = (word >> ((i & 1u) << 4u)) & 0xffffu;
    if dtype == BF16 {
        return bitcast<f32>(half << 16u);
    }
    return unpack2x16float(half).x;
}

// The 16 bits of a value, rounded to nearest, ties to even.
fn encode(value: f32, dtype: u32) -> u32 {
    let bits = bitcast<u32>(value);
    let magnitude = bits & 0x7fffffffu;
    if dtype == BF16 {
        let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
        // A NaN keeps its upper bits and remains a NaN.
        return select(rounded, (bits >> 16u) | 0x40u, magnitude > 0x7f800000u);
    }
    let sign = (bits >> 16u) & 0x8000u;
    // Magnitudes that round to 2^16 or above become infinite.
    if magnitude >= 0x477ff000u {
        return sign | select(0x7c00u, 0x7e00u, magnitude > 0x7f800000u);
    }
    // Below 2^-14 the unit is 2^-24. Adding 0.5 leaves the rounded number of units in the low bits.
    if magnitude < 0x38800000u {
        return sign | (bitcast<u32>(bitcast<f32>(magnitude) + 0.5) - 0x3f000000u);
    }
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}
