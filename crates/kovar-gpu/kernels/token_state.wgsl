// y = the last valid row of a. It does not change if that row is not bound.

import package::shared::a::a_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::put;

struct Params {
    // The number of bound tokens, the elements of a token, and the first bound token.
    dims: vec4<u32>,
    // The offset, and the stride of elements.
    out: vec4<u32>,
    // The offset, and the strides of tokens and of elements.
    a: vec4<u32>,
    // Whether a run-time scalar is the number of valid tokens, the scalar's index, and the number
    // of all tokens.
    scalar: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> scalars: array<i32>;

@compute @workgroup_size(WORKGROUP)
fn token_state(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    var valid = params.scalar.z;
    if params.scalar.x != 0u {
        valid = min(u32(max(scalars[params.scalar.y], 0)), valid);
    }
    // Rows before the bound ones wrap around to large numbers.
    let row = valid - 1u - params.dims.z;
    if i < params.dims.y && valid > params.dims.z && row < params.dims.x {
        put(params.out.x + i * params.out.y, a_at(params.a.x + row * params.a.y + i * params.a.z));
    }
}
