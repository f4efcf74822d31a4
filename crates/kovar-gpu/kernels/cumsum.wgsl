// y[i] = x[0] + .. + x[i] over each row. Of long rows, another dispatch leaves the sum of each chunk.

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
}

@group(0) @binding(0) var<uniform> params: Params;

// Elements that an invocation writes at once.
override PER: u32 = 1u;

// Neighbouring elements that a lane adds up.
const SERIAL = 8u;

// Tiles of the rows, a word left out after each lane's elements so that lanes use all banks.
var<workgroup> tile: array<f32, 2304>;
var<workgroup> totals: array<f32, 256>;

fn slot(i: u32) -> u32 {
    return i + i / SERIAL;
}

@compute @workgroup_size(256)
fn cumsum(
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
    let to = position(params.out, part.at);
    let step = params.out.strides.w;
    var before = 0.0;
    if rows.chunks > 1u {
        var sum = 0.0;
        let sums = part.row * rows.chunks;
        for (var i = sums + part.lane; i < part.number; i += part.lanes) {
            sum += b_at(i);
        }
        before = sum_lanes(lane, rows.log2_lanes, sum);
    }
    let first_lane = lane - part.lane;
    let own = first_lane * SERIAL;
    for (var done = 0u; done < rows.chunk; done += part.lanes * SERIAL) {
        let first = part.first + done;
        for (var j = 0u; j < SERIAL; j += 1u) {
            let i = j * part.lanes + part.lane;
            var x = 0.0;
            if first + i < part.last {
                x = a_at(start + (first + i) * stride);
            }
            tile[slot(own + i)] = x;
        }
        workgroupBarrier();
        var total = 0.0;
        for (var j = 0u; j < SERIAL; j += 1u) {
            total += tile[slot(lane * SERIAL + j)];
        }
        totals[lane] = total;
        workgroupBarrier();
        for (var reach = 1u; reach < part.lanes; reach <<= 1u) {
            var left = 0.0;
            if part.lane >= reach {
                left = totals[lane - reach];
            }
            workgroupBarrier();
            totals[lane] += left;
            workgroupBarrier();
        }
        var running = before;
        if part.lane > 0u {
            running += totals[lane - 1u];
        }
        for (var j = 0u; j < SERIAL; j += 1u) {
            let at = slot(lane * SERIAL + j);
            running += tile[at];
            tile[at] = running;
        }
        before += totals[first_lane + part.lanes - 1u];
        workgroupBarrier();
        for (var j = 0u; j < SERIAL; j += PER) {
            let i = j * part.lanes + part.lane * PER;
            if first + i < part.last {
                let y = tile[slot(own + i)];
                if PER == 1u {
                    put(to + (first + i) * step, y);
                } else {
                    put_pair(to + first + i, y, tile[slot(own + i + 1u)]);
                }
            }
        }
        workgroupBarrier();
    }
}
