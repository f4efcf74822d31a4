// y = f(x), element by element.

import package::shared::a::a_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::math::{
    NAN_BITS, exponential, gelu, gelu_quick, gelu_tanh, hyperbolic_tangent, keep_nan, logarithm,
    or_bits, sigmoid, silu, sine, softplus, square_root,
};
import package::shared::out::{PER, put, put_pair};
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    // The attributes of the kind.
    extra: vec4<f32>,
}

@group(0) @binding(0) var<uniform> params: Params;

override KIND: u32 = 0u;

// The result for numbers. For NaN it is undefined.
fn of_number(x: f32) -> f32 {
    switch KIND {
        case 0u { return -x; }
        case 1u { return abs(x); }
        case 2u { return x * x; }
        case 3u { return or_bits(square_root(x), NAN_BITS, bitcast<u32>(x) > 0x80000000u); }
        case 4u { return exponential(x); }
        case 5u { return logarithm(x); }
        case 6u { return sine(x, 0u); }
        case 7u { return sine(x, 1u); }
        case 8u { return hyperbolic_tangent(x); }
        case 9u { return sigmoid(x); }
        case 10u { return silu(x); }
        case 11u { return gelu(x); }
        case 12u { return gelu_tanh(x); }
        case 13u { return gelu_quick(x); }
        case 14u { return max(x, 0.0); }
        case 15u { return max(x, 0.0) * max(x, 0.0); }
        case 16u { return select(x, params.extra.x * x, x < 0.0); }
        case 17u { return softplus(x); }
        case 18u { return clamp(x, params.extra.x, params.extra.y); }
        case 19u { return x * params.extra.x; }
        // A cast.
        default { return x; }
    }
}

fn f(x: f32) -> f32 {
    return keep_nan(of_number(x), x);
}

@compute @workgroup_size(WORKGROUP)
fn unary(
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
    let source = position(params.a, at);
    let place = position(params.out, at);
    let y = f(a_at(source));
    if PER == 1u {
        put(place, y);
    } else {
        put_pair(place, y, f(a_at(source + params.a.strides.w)));
    }
}
