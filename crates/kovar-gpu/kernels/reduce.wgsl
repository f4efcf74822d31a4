// y = sum(x) / divisor over each chunk of each row, or sum(x^2) / divisor.

import package::shared::a::a_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::put;
import package::shared::reduce::{enter_subgroups, sum_lanes};
import package::shared::rows::{Rows, part_of};
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    // Rows of chunks.
    out: View,
    a: View,
    divisor: f32,
    squared: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(256)
fn reduce(
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
    if params.squared != 0u {
        for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
            let x = a_at(start + i * stride);
            sum += x * x;
        }
    } else {
        for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
            sum += a_at(start + i * stride);
        }
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    if part.inside && part.lane == 0u {
        let chunk = part.number - part.row * rows.chunks;
        put(position(params.out, part.at) + chunk * params.out.strides.w, all / params.divisor);
    }
}
