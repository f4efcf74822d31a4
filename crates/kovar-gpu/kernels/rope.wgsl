// Rotary position embedding: pairs of a head's elements times 2 x 2 matrices, which a table has for
// each token and pair. `rope` has rotations, (x cos - y sin, x sin + y cos); `rope_apply` any
// matrix.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{PER, put, put_pair};
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    // The sizes before the tokens, tokens, heads, and the invocations of a head: they have its
    // pairs, then the elements that are copied.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The table.
    b: View,
    // The row of the table of the first token.
    first_token: u32,
    // The pairs of a head.
    pairs: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for a table of matrices, row by row, 0 for cosines and sines.
override MATRICES: u32 = 0u;
// 1 if the elements of a pair are neighbours, 0 if they lie apart by the number of pairs.
override NEIGHBOURS: u32 = 0u;

// The product of a pair of elements.
fn rotated(token: u32, pair: u32, x: vec2<f32>) -> vec2<f32> {
    if MATRICES == 0u {
        let c = b_at(position(params.b, vec4<u32>(0u, token, pair, 0u)));
        let s = b_at(position(params.b, vec4<u32>(0u, token, pair, 1u)));
        return vec2<f32>(x.x * c - x.y * s, x.x * s + x.y * c);
    }
    let first = position(params.b, vec4<u32>(token, pair, 0u, 0u));
    let second = first + params.b.strides.z;
    let next = params.b.strides.w;
    return vec2<f32>(
        x.x * b_at(first) + x.y * b_at(first + next),
        x.x * b_at(second) + x.y * b_at(second + next),
    );
}

fn rotate(invocation: u32) {
    let dims = params.dims;
    if invocation >= count_of(dims) {
        return;
    }
    let at = unravel(invocation, dims);
    let head = vec4<u32>(at.xyz, 0u);
    let start = position(params.a, head);
    let step = params.a.strides.w;
    let to = position(params.out, head);
    let stride = params.out.strides.w;
    let token = params.first_token + at.y;
    // A pair of neighbours fills what is written at once. Other pairs are computed two by two.
    let per = select(PER, 1u, NEIGHBOURS == 1u);
    let rotating = params.pairs / per;
    if at.w >= rotating {
        let i = 2u * params.pairs + (at.w - rotating) * PER;
        if PER == 1u {
            put(to + i * stride, a_at(start + i * step));
        } else {
            put_pair(to + i, a_at(start + i * step), a_at(start + (i + 1u) * step));
        }
        return;
    }
    let pair = at.w * per;
    let i = select(pair, 2u * pair, NEIGHBOURS == 1u);
    let j = select(pair + params.pairs, i + 1u, NEIGHBOURS == 1u);
    let x = vec2<f32>(a_at(start + i * step), a_at(start + j * step));
    let y = rotated(token, pair, x);
    if PER == 1u {
        put(to + i * stride, y.x);
        put(to + j * stride, y.y);
    } else if NEIGHBOURS == 1u {
        put_pair(to + i, y.x, y.y);
    } else {
        let next = vec2<f32>(a_at(start + (i + 1u) * step), a_at(start + (j + 1u) * step));
        let z = rotated(token, pair + 1u, next);
        put_pair(to + i, y.x, z.x);
        put_pair(to + j, y.y, z.y);
    }
}

@compute @workgroup_size(256)
fn rope(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    rotate(flat_workgroup(workgroup, workgroups) * 256u + lane);
}

@compute @workgroup_size(256)
fn rope_apply(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    rotate(flat_workgroup(workgroup, workgroups) * 256u + lane);
}
