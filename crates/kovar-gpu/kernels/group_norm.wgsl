// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel] over each group, in two
// dispatches: the moments of each chunk of each group, and the norm, which merges them.

import package::shared::a::a_at;
import package::shared::affine::{Affine, affine};
import package::shared::d::d_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::{PER, put, put_pair};
import package::shared::reduce::{sum_lanes, sum_pairs};
import package::shared::subgroups::enter_subgroups;
import package::shared::view::{View, position, unravel};

struct Params {
    // Three outer sizes, whose product is the number of groups, and the channels of a group.
    groups: vec4<u32>,
    // The sizes within a channel.
    sizes: vec4<u32>,
    // Their strides are those of `groups`; those of `sizes` follow.
    out: View,
    a: View,
    out_steps: vec4<u32>,
    a_steps: vec4<u32>,
    // The elements of a channel, of a group, of a chunk.
    channel_len: u32,
    group_len: u32,
    chunk: u32,
    // The chunks of a group.
    chunks: u32,
    // The number of groups.
    count: u32,
    // The channel of the weight at which the first group begins, and the distance between groups.
    first_channel: u32,
    channel_step: u32,
    norm: Affine,
}

@group(0) @binding(0) var<uniform> params: Params;

// An element's channel in its group, and its index in the channel.
struct Cursor {
    channel: u32,
    within: u32,
}

fn cursor_at(i: u32) -> Cursor {
    let channel = i / params.channel_len;
    return Cursor(channel, i - channel * params.channel_len);
}

fn moved(cursor: Cursor, step: u32) -> Cursor {
    let within = cursor.within + step;
    if within < params.channel_len {
        return Cursor(cursor.channel, within);
    }
    let channels = within / params.channel_len;
    return Cursor(cursor.channel + channels, within - channels * params.channel_len);
}

// The distance of an element from the first element of its group.
fn distance(cursor: Cursor, view: View, steps: vec4<u32>) -> u32 {
    if params.sizes.w == params.channel_len {
        return cursor.channel * view.strides.w + cursor.within * steps.w;
    }
    let offsets = unravel(cursor.within, params.sizes) * steps;
    return cursor.channel * view.strides.w + offsets.x + offsets.y + offsets.z + offsets.w;
}

// The coordinates of a group.
fn coordinates(group: u32) -> vec4<u32> {
    return vec4<u32>(unravel(group, vec4<u32>(1u, params.groups.xyz)).yzw, 0u);
}

// Writes four values for each chunk: a center near its mean, the sum of the deviations from the
// center, the sum of their squares, and the number of elements.
@compute @workgroup_size(256)
fn group_norm_moments(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) invocation: u32,
) {
    @if(subgroups) enter_subgroups(subgroup, subgroups, invocation);
    // Workgroups of the grid beyond the last chunk compute that chunk again.
    let number = min(flat_workgroup(workgroup, workgroups), params.count * params.chunks - 1u);
    let group = number / params.chunks;
    let first = (number - group * params.chunks) * params.chunk;
    let last = min(first + params.chunk, params.group_len);
    let start = position(params.a, coordinates(group));
    var sum = 0.0;
    var cursor = cursor_at(first + lane);
    for (var i = first + lane; i < last; i += 256u) {
        sum += a_at(start + distance(cursor, params.a, params.a_steps));
        cursor = moved(cursor, 256u);
    }
    let n = f32(last - first);
    let center = sum_lanes(lane, 8u, sum) / n;
    var sums = vec2<f32>(0.0);
    cursor = cursor_at(first + lane);
    for (var i = first + lane; i < last; i += 256u) {
        let x = a_at(start + distance(cursor, params.a, params.a_steps)) - center;
        sums += vec2<f32>(x, x * x);
        cursor = moved(cursor, 256u);
    }
    let all = sum_pairs(lane, 8u, sums);
    if lane == 0u {
        put(4u * number, center);
        put(4u * number + 1u, all.x);
        put(4u * number + 2u, all.y);
        put(4u * number + 3u, n);
    }
}

@compute @workgroup_size(256)
fn group_norm(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) invocation: u32,
) {
    @if(subgroups) enter_subgroups(subgroup, subgroups, invocation);
    let number = flat_workgroup(workgroup, workgroups);
    let inside = number < params.count * params.chunks;
    let group = select(0u, number, inside) / params.chunks;
    let n = f32(params.group_len);
    let moments = 4u * group * params.chunks;
    var sum = 0.0;
    for (var i = lane; i < params.chunks; i += 256u) {
        sum += d_at(moments + 4u * i) * d_at(moments + 4u * i + 3u);
    }
    let center = sum_lanes(lane, 8u, sum) / n;
    var sums = vec2<f32>(0.0);
    for (var i = lane; i < params.chunks; i += 256u) {
        let at = moments + 4u * i;
        let away = d_at(at) - center;
        let lacks = d_at(at + 1u);
        let all = away * d_at(at + 3u);
        sums += vec2<f32>(all + lacks, d_at(at + 2u) + away * (all + 2.0 * lacks));
    }
    let all = sum_pairs(lane, 8u, sums);
    let shift = all.x / n;
    let factor = 1.0 / sqrt(max(all.y - all.x * shift, 0.0) / n + params.norm.eps);
    if !inside {
        return;
    }
    let at = coordinates(group);
    let start = position(params.a, at);
    let to = position(params.out, at);
    let first_channel = params.first_channel + at.z * params.channel_step;
    let first = (number - group * params.chunks) * params.chunk + lane * PER;
    let last = min(first - lane * PER + params.chunk, params.group_len);
    var cursor = cursor_at(first);
    for (var i = first; i < last; i += 256u * PER) {
        let source = start + distance(cursor, params.a, params.a_steps);
        let place = to + distance(cursor, params.out, params.out_steps);
        let channel = first_channel + cursor.channel;
        let y = affine(params.norm, channel, (a_at(source) - center - shift) * factor);
        if PER == 1u {
            put(place, y);
        } else {
            let next = (a_at(source + params.a_steps.w) - center - shift) * factor;
            put_pair(place, y, affine(params.norm, channel, next));
        }
        cursor = moved(cursor, 256u * PER);
    }
}
