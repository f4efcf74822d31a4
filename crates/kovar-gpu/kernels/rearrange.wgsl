// y = the elements of x as bits: copied, repeated along dimensions, or surrounded by a constant.

import package::shared::a::a;
import package::shared::bits::{SHIFT, SPLIT, bits_of, put_bits, put_word};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::PER;
import package::shared::view::{View, count_of, position, unravel};

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

// 0 to copy x, 1 to repeat it, 2 to pad it.
override MODE: u32 = 0u;

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
    if first >= count_of(dims) {
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
