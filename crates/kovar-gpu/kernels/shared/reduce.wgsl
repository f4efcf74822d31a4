// Reductions over the lanes of a workgroup of 256, or over each run of 2^k lanes of it. All lanes
// get the result. Every lane of the workgroup must call them, with the same `log2_lanes`.

import package::shared::subgroups::{all_subgroups, leads_subgroup, own_subgroup};

var<workgroup> lane_sums: array<vec2<f32>, 256>;

fn sum_pairs(lane: u32, log2_lanes: u32, value: vec2<f32>) -> vec2<f32> {
    @if(subgroups)
    if log2_lanes == 8u {
        let own = subgroupAdd(value);
        if leads_subgroup {
            lane_sums[own_subgroup] = own;
        }
        workgroupBarrier();
        var all = vec2<f32>(0.0);
        for (var i = 0u; i < all_subgroups; i += 1u) {
            all += lane_sums[i];
        }
        workgroupBarrier();
        return all;
    }
    lane_sums[lane] = value;
    workgroupBarrier();
    let lanes = 1u << log2_lanes;
    for (var step = lanes >> 1u; step > 0u; step >>= 1u) {
        if (lane & (lanes - 1u)) < step {
            lane_sums[lane] += lane_sums[lane + step];
        }
        workgroupBarrier();
    }
    let all = lane_sums[lane & ~(lanes - 1u)];
    workgroupBarrier();
    return all;
}

fn sum_lanes(lane: u32, log2_lanes: u32, value: f32) -> f32 {
    return sum_pairs(lane, log2_lanes, vec2<f32>(value, 0.0)).x;
}

var<workgroup> lane_greatest: array<f32, 256>;

fn greatest_of_lanes(lane: u32, log2_lanes: u32, value: f32) -> f32 {
    @if(subgroups)
    if log2_lanes == 8u {
        let own = subgroupMax(value);
        if leads_subgroup {
            lane_greatest[own_subgroup] = own;
        }
        workgroupBarrier();
        var all = lane_greatest[0];
        for (var i = 1u; i < all_subgroups; i += 1u) {
            all = max(all, lane_greatest[i]);
        }
        workgroupBarrier();
        return all;
    }
    lane_greatest[lane] = value;
    workgroupBarrier();
    let lanes = 1u << log2_lanes;
    for (var step = lanes >> 1u; step > 0u; step >>= 1u) {
        if (lane & (lanes - 1u)) < step {
            lane_greatest[lane] = max(lane_greatest[lane], lane_greatest[lane + step]);
        }
        workgroupBarrier();
    }
    let all = lane_greatest[lane & ~(lanes - 1u)];
    workgroupBarrier();
    return all;
}

var<workgroup> lane_best: array<vec2<u32>, 256>;

// The pair of a key and an index that has the greater key; of equal keys, the lower index.
fn better(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, a.x > b.x || (a.x == b.x && a.y < b.y));
}

// The best of the lanes' pairs of a key and an index, by `better`.
fn best_of_lanes(lane: u32, log2_lanes: u32, value: vec2<u32>) -> vec2<u32> {
    @if(subgroups)
    if log2_lanes == 8u {
        let key = subgroupMax(value.x);
        let index = subgroupMin(select(0xffffffffu, value.y, value.x == key));
        if leads_subgroup {
            lane_best[own_subgroup] = vec2<u32>(key, index);
        }
        workgroupBarrier();
        var all = lane_best[0];
        for (var i = 1u; i < all_subgroups; i += 1u) {
            all = better(all, lane_best[i]);
        }
        workgroupBarrier();
        return all;
    }
    lane_best[lane] = value;
    workgroupBarrier();
    let lanes = 1u << log2_lanes;
    for (var step = lanes >> 1u; step > 0u; step >>= 1u) {
        if (lane & (lanes - 1u)) < step {
            lane_best[lane] = better(lane_best[lane], lane_best[lane + step]);
        }
        workgroupBarrier();
    }
    let all = lane_best[lane & ~(lanes - 1u)];
    workgroupBarrier();
    return all;
}
