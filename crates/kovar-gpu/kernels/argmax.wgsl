// The index of the greatest element of each row, the lowest index of equal ones. Long rows take two
// dispatches: the first writes the greatest key of each chunk and its index, the second merges
// these.

import package::shared::a::{a, a_at};
import package::shared::grid::flat_workgroup;
import package::shared::order::order_key;
import package::shared::reduce::{best_of_lanes, better};
import package::shared::rows::{Rows, chunk_of};
import package::shared::subgroups::enter_subgroups;
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> indices: array<u32>;

// 1 if `a` holds the chunks' pairs of a key and an index.
override MERGES: u32 = 0u;

@compute @workgroup_size(256)
fn argmax(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) invocation: u32,
) {
    @if(subgroups) enter_subgroups(subgroup, subgroups, invocation);
    let rows = params.rows;
    let chunk = chunk_of(rows, flat_workgroup(workgroup, workgroups), lane);
    let start = position(params.a, chunk.at);
    let stride = params.a.strides.w;
    var own = vec2<u32>(0u, 0xffffffffu);
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        let at = start + i * stride;
        if MERGES == 0u {
            own = better(own, vec2<u32>(order_key(a_at(at)), i));
        } else {
            own = better(own, vec2<u32>(a[2u * at], a[2u * at + 1u]));
        }
    }
    let all = best_of_lanes(lane, rows.log2_lanes, own);
    if chunk.inside && chunk.lane == 0u {
        if rows.chunks == 1u {
            indices[position(params.out, chunk.at)] = all.y;
        } else {
            indices[2u * chunk.index] = all.x;
            indices[2u * chunk.index + 1u] = all.y;
        }
    }
}
