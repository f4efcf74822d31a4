// y = softmax(scale * x + slope(head) * mask) over each row. For rows of several chunks, an earlier
// dispatch writes the greatest score and the sum of each chunk to `c`.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::c::c_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{PER, put, put_pair};
import package::shared::reduce::{greatest_of_lanes, sum_lanes};
import package::shared::rows::{Chunk, Rows, chunk_of};
import package::shared::subgroups::enter_subgroups;
import package::shared::view::{View, position};

struct Params {
    rows: Rows,
    out: View,
    a: View,
    // The mask.
    b: View,
    scale: f32,
    masked: u32,
    // The first head, and the number of heads whose slopes are whole powers of the first slope. The
    // number is 0 if all slopes are 1.
    first_head: u32,
    power: u32,
    // The negative base-2 logarithm of the ratio of neighbouring slopes.
    slope_step: f32,
}

@group(0) @binding(0) var<uniform> params: Params;

// The score of an element that is excluded.
const EXCLUDED = -3.4028234e38;

// 2^x within an F32 rounding or two, for x between -126 and 0.
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

fn is_negative_infinity(x: f32) -> bool {
    return bitcast<u32>(x) == 0xff800000u;
}

// A row of scores.
struct Scores {
    // Where it begins in `a`.
    start: u32,
    stride: u32,
    // Where its mask begins in `b`.
    mask_start: u32,
    mask_stride: u32,
    slope: f32,
}

fn scores_of(chunk: Chunk) -> Scores {
    return Scores(
        position(params.a, chunk.at),
        params.a.strides.w,
        position(params.b, chunk.at),
        params.b.strides.w,
        slope(params.first_head + chunk.at.y),
    );
}

fn score(scores: Scores, i: u32) -> f32 {
    var s = a_at(scores.start + i * scores.stride) * params.scale;
    if params.masked != 0u {
        let m = b_at(scores.mask_start + i * scores.mask_stride);
        if is_negative_infinity(m) {
            return EXCLUDED;
        }
        s = fma(scores.slope, m, s);
    }
    return select(s, EXCLUDED, is_negative_infinity(s));
}

fn weight(score: f32, greatest: f32) -> f32 {
    return select(exp(score - greatest), 0.0, score == EXCLUDED);
}

// The greatest score of the lane's elements of a chunk.
fn greatest_score(chunk: Chunk, scores: Scores) -> f32 {
    var greatest = EXCLUDED;
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        greatest = max(greatest, score(scores, i));
    }
    return greatest;
}

// The sum of the weights of the lane's elements of a chunk.
fn weight_sum(chunk: Chunk, scores: Scores, greatest: f32) -> f32 {
    var sum = 0.0;
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        sum += weight(score(scores, i), greatest);
    }
    return sum;
}

// Writes the greatest score and the sum of each chunk.
@compute @workgroup_size(256)
fn softmax_chunks(
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
    let scores = scores_of(chunk);
    let greatest = greatest_of_lanes(lane, rows.log2_lanes, greatest_score(chunk, scores));
    let all = sum_lanes(lane, rows.log2_lanes, weight_sum(chunk, scores, greatest));
    if chunk.inside && chunk.lane == 0u {
        put(2u * chunk.index, greatest);
        put(2u * chunk.index + 1u, all);
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
    let chunk = chunk_of(rows, flat_workgroup(workgroup, workgroups), lane);
    let scores = scores_of(chunk);
    let is_whole = rows.chunks == 1u;
    let chunks = 2u * chunk.row * rows.chunks;
    var own = EXCLUDED;
    if is_whole {
        own = greatest_score(chunk, scores);
    } else {
        for (var i = chunk.lane; i < rows.chunks; i += chunk.lanes) {
            own = max(own, c_at(chunks + 2u * i));
        }
    }
    let greatest = greatest_of_lanes(lane, rows.log2_lanes, own);
    var sum = 0.0;
    if is_whole {
        sum = weight_sum(chunk, scores, greatest);
    } else {
        for (var i = chunk.lane; i < rows.chunks; i += chunk.lanes) {
            sum += c_at(chunks + 2u * i + 1u) * weight(c_at(chunks + 2u * i), greatest);
        }
    }
    let all = sum_lanes(lane, rows.log2_lanes, sum);
    // A row whose elements are all excluded gives zeros.
    let divisor = select(all, 1.0, greatest == EXCLUDED);
    let to = position(params.out, chunk.at);
    let step = params.out.strides.w;
    for (var i = chunk.first + chunk.lane * PER; i < chunk.last; i += chunk.lanes * PER) {
        let y = weight(score(scores, i), greatest) / divisor;
        if PER == 1u {
            put(to + i * step, y);
        } else {
            put_pair(to + i, y, weight(score(scores, i + 1u), greatest) / divisor);
        }
    }
}
