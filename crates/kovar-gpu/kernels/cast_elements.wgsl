// y = x as another plain dtype. The dtypes are parameters, not constants, because a pipeline for
// each pair would be too many.

import package::shared::a::a;
import package::shared::bits::{put_bits, put_word};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::number::{decode_number, encode_number};
import package::shared::out::PER;
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    // The dtypes of x and y, the base-2 logarithm of the elements of x in a word, and 1 if an
    // element of x has two words.
    from_to: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for results of two words.
override PAIRS: u32 = 0u;

fn cast_of(i: u32) -> vec2<u32> {
    let kind = params.from_to;
    var words = vec2<u32>(0u);
    if kind.w == 1u {
        words = vec2<u32>(a[2u * i], a[2u * i + 1u]);
    } else {
        let width = 32u >> kind.z;
        let shift = (i & ((1u << kind.z) - 1u)) * width;
        words.x = (a[i >> kind.z] >> shift) & (0xffffffffu >> (32u - width));
    }
    return encode_number(decode_number(words, kind.x), kind.y);
}

@compute @workgroup_size(WORKGROUP)
fn cast_elements(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let dims = params.dims;
    if first >= count_of(dims) {
        return;
    }
    let at = unravel(first, dims);
    let place = position(params.out, at);
    let source = position(params.a, at);
    let step = params.a.strides.w;
    let words = cast_of(source);
    if PAIRS == 1u {
        put_bits(2u * place, words.x);
        put_bits(2u * place + 1u, words.y);
    } else if PER == 1u {
        put_bits(place, words.x);
    } else if PER == 2u {
        put_word(place, words.x | (cast_of(source + step).x << 16u));
    } else {
        let pair = words.x | (cast_of(source + step).x << 8u);
        put_word(place, pair
            | (cast_of(source + 2u * step).x << 16u)
            | (cast_of(source + 3u * step).x << 24u));
    }
}
