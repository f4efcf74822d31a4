// y = round(a / b), halves to even, clamped to -127..127; 0 where the quotient is NaN.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::bits::{put_bits, put_word};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::PER;
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    b: View,
}

@group(0) @binding(0) var<uniform> params: Params;

// A magnitude below 2^20 times 2^100. It handles denormals, which devices may take for 0.
fn raised(magnitude: u32) -> f32 {
    if magnitude < 0x800000u {
        return f32(magnitude) * 1.77635684e-15;
    }
    return bitcast<f32>(magnitude + (100u << 23u));
}

// |x| / |scale|, rounded and clamped.
fn magnitude_of_code(x: u32, scale: u32) -> u32 {
    let infinite = 0x7f800000u;
    if x > infinite || scale > infinite || scale == infinite || x == 0u {
        return 0u;
    }
    // Quotients that are certainly above 127 are not computed.
    if x == infinite || scale == 0u || (x >> 23u) > max(scale >> 23u, 1u) + 8u {
        return 127u;
    }
    var quotient = 0.0;
    if (scale >> 23u) < 60u {
        quotient = raised(x) / raised(scale);
    } else {
        quotient = bitcast<f32>(x) / bitcast<f32>(scale);
    }
    return u32(min(round(quotient), 127.0));
}

fn code(i: u32, j: u32) -> u32 {
    let x = bitcast<u32>(a_at(i));
    let scale = bitcast<u32>(b_at(j));
    let magnitude = magnitude_of_code(x & 0x7fffffffu, scale & 0x7fffffffu);
    return select(magnitude, 0u - magnitude, ((x ^ scale) >> 31u) == 1u) & 0xffu;
}

@compute @workgroup_size(WORKGROUP)
fn quantize_rows(
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
    let i = position(params.a, at);
    let j = position(params.b, at);
    let place = position(params.out, at);
    let word = code(i, j);
    if PER == 1u {
        put_bits(place, word);
        return;
    }
    let a_step = params.a.strides.w;
    let b_step = params.b.strides.w;
    put_word(place, word
        | (code(i + a_step, j + b_step) << 8u)
        | (code(i + 2u * a_step, j + 2u * b_step) << 16u)
        | (code(i + 3u * a_step, j + 3u * b_step) << 24u));
}
