// y = sum(x) / divisor over each chunk of each row, or sum(x^2) / divisor.

import package::shared::grid::flat_workgroup;
import package::shared::out::put;
import package::shared::reduce::sum_lanes;
import package::shared::rows::{Rows, chunk_of};
import package::shared::subgroups::enter_subgroups;
import package::shared::sums::{sum_of, sum_of_squares};
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    // Its rows have an element for each chunk.
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
    let chunk = chunk_of(rows, flat_workgroup(workgroup, workgroups), lane);
    let start = position(params.a, chunk.at);
    let stride = params.a.strides.w;
    var sum = 0.0;
    if params.squared != 0u {
        sum = sum_of_squares(chunk, start, stride);
    } else {
        sum = sum_of(chunk, start, stride);
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    if chunk.inside && chunk.lane == 0u {
        let column = chunk.index - chunk.row * rows.chunks;
        put(position(params.out, chunk.at) + column * params.out.strides.w, all / params.divisor);
    }
}
