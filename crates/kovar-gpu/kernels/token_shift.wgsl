// y[0] = state, y[t] = a[t - 1], and zeros for tokens that are not valid.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::{PER, put, put_pair};

struct Params {
    // The number of bound tokens, the elements of a token, the first bound token of y, and that of
    // a.
    dims: vec4<u32>,
    // The offset, and the strides of tokens and of elements.
    out: vec4<u32>,
    a: vec4<u32>,
    // The offset, and the stride of elements.
    state: vec4<u32>,
    // Whether a run-time scalar is the number of valid tokens, the scalar's index, and the number
    // of all tokens.
    scalar: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(4) var<storage, read_write> scalars: array<i32>;

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
