// y = f(x), element by element.

import package::shared::a::a_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{put, put_pair};
import package::shared::view::{View, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    // Attributes of the kind.
    extra: vec4<f32>,
}

@group(0) @binding(0) var<uniform> params: Params;

override KIND: u32 = 0u;
// Elements of a row that an invocation computes: 2 fill a word of 16-bit results.
override PER: u32 = 1u;
override WORKGROUP: u32 = 256u;

fn f(x: f32) -> f32 {
    switch KIND {
        case 0u { return -x; }
        case 1u { return abs(x); }
        case 2u { return x * x; }
        default { return select(x, 0.0, x < 0.0); }
    }
}

@compute @workgroup_size(WORKGROUP)
fn unary(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let dims = params.dims;
    if first >= dims.x * dims.y * dims.z * dims.w {
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
