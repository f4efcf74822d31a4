// y = the elements of x moved as bits: as they lie, over and over along dimensions, or amid a constant.

import package::shared::a::a;
import package::shared::bits::{bits_of, put_bits, put_word, SHIFT};
import package::shared::grid::flat_workgroup;
import package::shared::view::{View, position, unravel};

struct Params {
    dims: vec4<u32>,
    // The dims of x.
    inner: vec4<u32>,
    // Where x begins along each dim of y.
    before: vec4<u32>,
    out: View,
    a: View,
    // The bits of the constant.
    fill: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 0 for x as it lies, 1 repeated, 2 padded.
override MODE: u32 = 0u;
// Elements of a row that an invocation writes as a word.
override PER: u32 = 1u;
// 1 for elements of two words, which are moved one by one.
override SPLIT: u32 = 0u;
override WORKGROUP: u32 = 256u;

fn moved(at: vec4<u32>, half: u32) -> u32 {
    var source = at;
    if MODE == 1u {
        source = at % params.inner;
    }
    if MODE == 2u {
        source = at - params.before;
        if any(source >= params.inner) {
            return select(params.fill.x, params.fill.y, half == 1u);
        }
    }
    let i = (position(params.a, source) << SPLIT) | half;
    return bits_of(a[i >> SHIFT], i);
}

@compute @workgroup_size(WORKGROUP)
fn rearrange(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let first = number >> SPLIT;
    let half = number & SPLIT;
    let dims = params.dims;
    if first >= dims.x * dims.y * dims.z * dims.w {
        return;
    }
    var at = unravel(first, dims);
    let place = (position(params.out, at) << SPLIT) | half;
    if PER == 1u {
        put_bits(place, moved(at, half));
        return;
    }
    var word = moved(at, half);
    at.w += 1u;
    if PER == 2u {
        word |= moved(at, half) << 16u;
    } else {
        word |= moved(at, half) << 8u;
        at.w += 1u;
        word |= moved(at, half) << 16u;
        at.w += 1u;
        word |= moved(at, half) << 24u;
    }
    put_word(place, word);
}
