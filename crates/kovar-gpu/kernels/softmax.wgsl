// y = softmax(scale * x + slope(head) * mask) over each row. Of long rows, another dispatch leaves
// the greatest score and the sum of each chunk.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::c::c_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{put, put_pair};
import package::shared::reduce::{enter_subgroups, greatest_of_lanes, sum_lanes};
import package::shared::rows::{Rows, part_of};
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    // The mask.
    b: View,
    scale: f32,
    masked: u32,
    // The first head, and how many go by the first step; 0 if all slopes are 1.
    first_head: u32,
    power: u32,
    // The negative logarithm of the ratio of neighbouring slopes.
    slope_step: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

// Elements that an invocation writes at once.
override PER: u32 = 1u;

// The score of an element that is excluded.
const EXCLUDED = -3.4028234e38;

// 2^x, to an f32 rounding or two, for x between -126 and 0.
fn power_of_2(x: f32) -> f32 {
    let whole = floor(x + 0.5);
    let t = (x - whole) * 0.6931472;
    let high = 1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0 + t * (1.0 / 5040.0)));
    let p = 1.0 + t * (1.0 + t * (0.5 + t * (1.0 / 6.0 + t * high)));
    return p * bitcast<f32>(u32(i32(whole) + 127) << 23u);
}

fn slope(head: u32) -> f32 {
    if params.power == 0u {
        return 1.0;
    }
    if head < params.power {
        return power_of_2(-params.slope_step * f32(head + 1u));
    }
    return power_of_2(-0.5 * params.slope_step * f32(2u * (head - params.power) + 1u));
}

fn is_least(x: f32) -> bool {
    return bitcast<u32>(x) == 0xff800000u;
}

// The score of an element at `source`, with its mask at `at`.
fn score(source: u32, at: u32, slope: f32) -> f32 {
    var s = a_at(source) * params.scale;
    if params.masked != 0u {
        let m = b_at(at);
        if is_least(m) {
            return EXCLUDED;
        }
        s = fma(slope, m, s);
    }
    return select(s, EXCLUDED, is_least(s));
}

fn weight(score: f32, greatest: f32) -> f32 {
    return select(exp(score - greatest), 0.0, score == EXCLUDED);
}

@compute @workgroup_size(256)
fn softmax_parts(
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
    let mask_start = position(params.b, part.at);
    let mask_stride = params.b.strides.w;
    let factor = slope(params.first_head + part.at.y);
    var own = EXCLUDED;
    for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
        own = max(own, score(start + i * stride, mask_start + i * mask_stride, factor));
    }
    let greatest = greatest_of_lanes(lane, rows.log2_lanes, own);
    var sum = 0.0;
    for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
        let s = score(start + i * stride, mask_start + i * mask_stride, factor);
        sum += weight(s, greatest);
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    if part.inside && part.lane == 0u {
        put(2u * part.number, greatest);
        put(2u * part.number + 1u, all);
    }
}

@compute @workgroup_size(256)
fn softmax(
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
    let mask_start = position(params.b, part.at);
    let mask_stride = params.b.strides.w;
    let factor = slope(params.first_head + part.at.y);
    let is_whole = rows.chunks == 1u;
    let chunks = 2u * part.row * rows.chunks;
    var own = EXCLUDED;
    if is_whole {
        for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
            own = max(own, score(start + i * stride, mask_start + i * mask_stride, factor));
        }
    } else {
        for (var i = part.lane; i < rows.chunks; i += part.lanes) {
            own = max(own, c_at(chunks + 2u * i));
        }
    }
    let greatest = greatest_of_lanes(lane, rows.log2_lanes, own);
    var sum = 0.0;
    if is_whole {
        for (var i = part.first + part.lane; i < part.last; i += part.lanes) {
            let s = score(start + i * stride, mask_start + i * mask_stride, factor);
            sum += weight(s, greatest);
        }
    } else {
        for (var i = part.lane; i < rows.chunks; i += part.lanes) {
            sum += c_at(chunks + 2u * i + 1u) * weight(c_at(chunks + 2u * i), greatest);
        }
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    // A row that is excluded as a whole gives zeros.
    let divisor = select(all, 1.0, greatest == EXCLUDED);
    let to = position(params.out, part.at);
    let step = params.out.strides.w;
    for (var i = part.first + part.lane * PER; i < part.last; i += part.lanes * PER) {
        let s = score(start + i * stride, mask_start + i * mask_stride, factor);
        let y = weight(s, greatest) / divisor;
        if PER == 1u {
            put(to + i * step, y);
        } else {
            let at = mask_start + (i + 1u) * mask_stride;
            let next = score(start + (i + 1u) * stride, at, factor);
            put_pair(to + i, y, weight(next, greatest) / divisor);
        }
    }
}
