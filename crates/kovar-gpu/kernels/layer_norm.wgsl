// y = (x - mean) / sqrt(variance + eps) * weight + bias over each row.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::c::c_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{put, put_pair};
import package::shared::reduce::{enter_subgroups, sum_lanes, sum_pairs};
import package::shared::rows::{Rows, part_of};
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    // The weight and the bias.
    b: View,
    c: View,
    eps: f32,
    weighted: u32,
    biased: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// Elements that an invocation writes at once.
override PER: u32 = 1u;

fn scaled(i: u32, x: f32) -> f32 {
    var y = x;
    if params.weighted != 0u {
        y *= b_at(params.b.offset + i * params.b.strides.w);
    }
    if params.biased != 0u {
        y += c_at(params.c.offset + i * params.c.strides.w);
    }
    return y;
}

@compute @workgroup_size(256)
fn layer_norm(
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
    let n = f32(rows.dims.w);
    // The mean as an f32; what it lacks is in the sum of the deviations from it.
    var sum = 0.0;
    for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
        sum += a_at(start + i * stride);
    }
    let center = sum_lanes(lane, rows.log2_lanes, sum) / n;
    var sums = vec2<f32>(0.0);
    for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
        let x = a_at(start + i * stride) - center;
        sums += vec2<f32>(x, x * x);
    }
    let all = sum_pairs(lane, rows.log2_lanes, sums);
    let shift = all.x / n;
    let factor = 1.0 / sqrt(max(all.y - all.x * shift, 0.0) / n + params.eps);
    let to = position(params.out, part.at);
    let step = params.out.strides.w;
    for (var i = part.first + part.lane * PER; i < part.last; i += part.lanes * PER) {
        let y = scaled(i, (a_at(start + i * stride) - center - shift) * factor);
        if PER == 1u {
            put(to + i * step, y);
        } else {
            let next = (a_at(start + (i + 1u) * stride) - center - shift) * factor;
            put_pair(to + i, y, scaled(i + 1u, next));
        }
    }
}
