// y = f(a, b), element by element.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::math::{gelu, keep_nan, quotient, silu};
import package::shared::out::{PER, put, put_pair};
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    b: View,
}

@group(0) @binding(0) var<uniform> params: Params;

override KIND: u32 = 0u;

// The kinds, numbered as in `src/ops/binary.rs`.
const ADD = 0u;
const SUB = 1u;
const MUL = 2u;
const DIV = 3u;
const SWIGLU = 4u;
const GEGLU = 5u;

fn f(x: f32, y: f32) -> f32 {
    switch KIND {
        case ADD { return x + y; }
        case SUB { return x - y; }
        case MUL { return x * y; }
        case DIV { return quotient(x, y); }
        case SWIGLU { return keep_nan(silu(x), x) * y; }
        case GEGLU { return keep_nan(gelu(x), x) * y; }
        // REGLU
        default { return keep_nan(max(x, 0.0), x) * y; }
    }
}

@compute @workgroup_size(WORKGROUP)
fn binary(
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
    let a_first = position(params.a, at);
    let b_first = position(params.b, at);
    let place = position(params.out, at);
    let y = f(a_at(a_first), b_at(b_first));
    if PER == 1u {
        put(place, y);
    } else {
        let next = f(a_at(a_first + params.a.strides.w), b_at(b_first + params.b.strides.w));
        put_pair(place, y, next);
    }
}
