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

// The kinds, numbered as in `src/ops/unary.rs`.
const NEG = 0u;
const ABS = 1u;
const SQR = 2u;
const SQRT = 3u;
const EXP = 4u;
const LOG = 5u;
const SIN = 6u;
const COS = 7u;
const TANH = 8u;
const SIGMOID = 9u;
const SILU = 10u;
const GELU = 11u;
const GELU_TANH = 12u;
const GELU_QUICK = 13u;
const RELU = 14u;
const RELU_SQR = 15u;
const LEAKY_RELU = 16u;
const SOFTPLUS = 17u;
const CLAMP = 18u;
const SCALE = 19u;

// The result for numbers. For NaN it is undefined.
fn of_number(x: f32) -> f32 {
    switch KIND {
        case NEG { return -x; }
        case ABS { return abs(x); }
        case SQR { return x * x; }
        case SQRT { return or_bits(square_root(x), NAN_BITS, bitcast<u32>(x) > 0x80000000u); }
        case EXP { return exponential(x); }
        case LOG { return logarithm(x); }
        case SIN { return sine(x, 0u); }
        case COS { return sine(x, 1u); }
        case TANH { return hyperbolic_tangent(x); }
        case SIGMOID { return sigmoid(x); }
        case SILU { return silu(x); }
        case GELU { return gelu(x); }
        case GELU_TANH { return gelu_tanh(x); }
        case GELU_QUICK { return gelu_quick(x); }
        case RELU { return max(x, 0.0); }
        case RELU_SQR { return max(x, 0.0) * max(x, 0.0); }
        case LEAKY_RELU { return select(x, params.extra.x * x, x < 0.0); }
        case SOFTPLUS { return softplus(x); }
        case CLAMP { return clamp(x, params.extra.x, params.extra.y); }
        case SCALE { return x * params.extra.x; }
        // CAST
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
