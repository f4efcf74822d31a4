// y = x / max(sqrt(sum(x^2)), eps) over each row.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{put, put_pair};
import package::shared::reduce::{enter_subgroups, sum_lanes};
import package::shared::rows::{Rows, part_of};
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

// Elements that an invocation writes at once.
override PER: u32 = 1u;

@compute @workgroup_size(256)
fn l2_norm(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) invocation: u32,
) {
    @if(subgroups) enter_subgroups(subgroup, subgroups, invocation);
    let rows = params.rows;
    let part = part_of(rows, flat_workgroup(workgroup, workgroups), lane);
    let start = position(params.a, part.at);
    let stride = params.a.strides.w;
    var sum = 0.0;
    if rows.chunks == 1u {
        for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
            let x = a_at(start + i * stride);
            sum += x * x;
        }
    } else {
        for (var i = part.lane; i < rows.chunks; i += part.lanes) {
            sum += b_at(part.row * rows.chunks + i);
        }
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    let factor = 1.0 / max(sqrt(all), params.eps);
    let to = position(params.out, part.at);
    let step = params.out.strides.w;
    for (var i = part.first + part.lane * PER; i < part.last; i += part.lanes * PER) {
        let y = a_at(start + i * stride) * factor;
        if PER == 1u {
            put(to + i * step, y);
        } else {
            put_pair(to + i, y, a_at(start + (i + 1u) * stride) * factor);
        }
    }
}
