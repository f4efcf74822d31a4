// Elements of factors of products: the dtypes of `element` and 8-bit floats, read one by one or in
// runs of 16 bytes.

import package::shared::element::{BF16, F16, F32, decode, word_of};

const F8E4M3 = 3u;
const F8E5M2 = 4u;

// The word that holds element `i`.
fn factor_word(i: u32, dtype: u32) -> u32 {
    if dtype >= F8E4M3 {
        return i >> 2u;
    }
    return word_of(i, dtype);
}

// Element `i`, given its word.
fn factor(word: u32, i: u32, dtype: u32) -> f32 {
    if dtype >= F8E4M3 {
        return eight_bits((word >> ((i & 3u) << 3u)) & 0xffu, dtype);
    }
    return decode(word, i, dtype);
}

// An 8-bit float of the OCP specification.
fn eight_bits(code: u32, dtype: u32) -> f32 {
    let magnitude = code & 0x7fu;
    let sign = (code & 0x80u) << 24u;
    var bits: u32;
    if dtype == F8E4M3 {
        bits = (magnitude << 20u) + (120u << 23u);
        if magnitude < 8u {
            bits = bitcast<u32>(f32(magnitude) * 0.001953125);
        }
        if magnitude == 0x7fu {
            bits = 0x7fc00000u;
        }
    } else {
        bits = (magnitude << 21u) + (112u << 23u);
        if magnitude < 4u {
            bits = bitcast<u32>(f32(magnitude) * 0.0000152587890625);
        }
        if magnitude >= 0x7cu {
            bits = 0x7f800000u | ((magnitude & 3u) << 21u);
        }
    }
    return bitcast<f32>(bits | sign);
}

// The index of the run of 16 bytes that holds element `i`.
fn run_of(i: u32, dtype: u32) -> u32 {
    if dtype == F32 {
        return i >> 2u;
    }
    return select(i >> 3u, i >> 4u, dtype >= F8E4M3);
}

// Elements `i` to `i + 3`, `i` a multiple of 4, given their run.
fn four_of(run: vec4<u32>, i: u32, dtype: u32) -> vec4<f32> {
    if dtype == F32 {
        return bitcast<vec4<f32>>(run);
    }
    if dtype >= F8E4M3 {
        let word = run[(i >> 2u) & 3u];
        return vec4<f32>(
            eight_bits(word & 0xffu, dtype),
            eight_bits((word >> 8u) & 0xffu, dtype),
            eight_bits((word >> 16u) & 0xffu, dtype),
            eight_bits(word >> 24u, dtype),
        );
    }
    let words = select(run.xy, run.zw, (i & 4u) != 0u);
    if dtype == BF16 {
        return bitcast<vec4<f32>>(vec4<u32>(
            words.x << 16u,
            words.x & 0xffff0000u,
            words.y << 16u,
            words.y & 0xffff0000u,
        ));
    }
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
