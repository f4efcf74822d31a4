// y = (x - mean) / sqrt(variance + eps) * weight + bias over each row.

import package::shared::a::a_at;
import package::shared::affine::{Affine, affine};
import package::shared::grid::flat_workgroup;
import package::shared::out::{PER, put, put_pair};
import package::shared::reduce::{sum_lanes, sum_pairs};
import package::shared::rows::{Rows, chunk_of};
import package::shared::subgroups::enter_subgroups;
import package::shared::sums::sum_of;
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    norm: Affine,
}

@group(0) @binding(0) var<uniform> params: Params;

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
    let chunk = chunk_of(rows, flat_workgroup(workgroup, workgroups), lane);
    let start = position(params.a, chunk.at);
    let stride = params.a.strides.w;
    let n = f32(rows.dims.w);
    // The mean rounded to F32. The deviations' sum corrects the rounding error.
    let center = sum_lanes(lane, rows.log2_lanes, sum_of(chunk, start, stride)) / n;
    var sums = vec2<f32>(0.0);
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        let x = a_at(start + i * stride) - center;
        sums += vec2<f32>(x, x * x);
    }
    let all = sum_pairs(lane, rows.log2_lanes, sums);
    let shift = all.x / n;
    let factor = 1.0 / sqrt(max(all.y - all.x * shift, 0.0) / n + params.norm.eps);
    let to = position(params.out, chunk.at);
    let step = params.out.strides.w;
    for (var i = chunk.first + chunk.lane * PER; i < chunk.last; i += chunk.lanes * PER) {
        let y = affine(params.norm, i, (a_at(start + i * stride) - center - shift) * factor);
        if PER == 1u {
            put(to + i * step, y);
        } else {
            let next = (a_at(start + (i + 1u) * stride) - center - shift) * factor;
            put_pair(to + i, y, affine(params.norm, i + 1u, next));
        }
    }
}
