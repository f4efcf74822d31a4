// y = x / sqrt(mean(x^2) + eps) * weight over each row.

import package::shared::a::a_at;
import package::shared::c::c_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{PER, put, put_pair};
import package::shared::rows::{Rows, chunk_of};
import package::shared::subgroups::enter_subgroups;
import package::shared::sums::row_squares;
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    // The weight.
    c: View,
    eps: f32,
    weighted: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn weight(i: u32) -> f32 {
    if params.weighted == 0u {
        return 1.0;
    }
    return c_at(params.c.offset + i * params.c.strides.w);
}

@compute @workgroup_size(256)
fn rms_norm(
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
    let squares = row_squares(rows, chunk, start, stride, lane);
    let factor = 1.0 / sqrt(squares / f32(rows.dims.w) + params.eps);
    let to = position(params.out, chunk.at);
    let step = params.out.strides.w;
    for (var i = chunk.first + chunk.lane * PER; i < chunk.last; i += chunk.lanes * PER) {
        let y = a_at(start + i * stride) * factor * weight(i);
        if PER == 1u {
            put(to + i * step, y);
        } else {
            let next = a_at(start + (i + 1u) * stride) * factor * weight(i + 1u);
            put_pair(to + i, y, next);
        }
    }
}
