// y[0] = state, y[t] = a[t - 1], 0 for tokens that aren't valid.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{put, put_pair};

struct Params {
    // Tokens here, elements of each, the number of the first token here, that of the first one of a here.
    dims: vec4<u32>,
    // Offset, and the strides of tokens and of elements.
    out: vec4<u32>,
    a: vec4<u32>,
    // Offset, and the stride of elements.
    state: vec4<u32>,
    // Whether a run-time scalar says how many tokens are valid, which one, and how many there are.
    scalar: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(4) var<storage, read_write> scalars: array<i32>;

// Elements of a row that an invocation computes: 2 fill a word of 16-bit results.
override PER: u32 = 1u;
override WORKGROUP: u32 = 256u;

// Element `i` of the token before token `t`.
fn before(t: u32, i: u32, valid: u32) -> f32 {
    if t >= valid {
        return 0.0;
    }
    if t == 0u {
        return b_at(params.state.x + i * params.state.y);
    }
    return a_at(params.a.x + (t - 1u - params.dims.w) * params.a.y + i * params.a.z);
}

@compute @workgroup_size(WORKGROUP)
fn token_shift(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let t = first / params.dims.y;
    if t >= params.dims.x {
        return;
    }
    let i = first - t * params.dims.y;
    var valid = params.scalar.z;
    if params.scalar.x != 0u {
        valid = u32(max(scalars[params.scalar.y], 0));
    }
    let place = params.out.x + t * params.out.y + i * params.out.z;
    let value = before(t + params.dims.z, i, valid);
    if PER == 1u {
        put(place, value);
    } else {
        put_pair(place, value, before(t + params.dims.z, i + 1u, valid));
    }
}
