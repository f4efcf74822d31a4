// Indices in the order of the elements of each row, by bitonic sorts (Batcher 1968) of pairs of a
// key and an index. No two pairs are equal, so the order is stable. A workgroup sorts one block, or
// several short ones. Further dispatches merge the blocks of long rows, which are passed on as
// pairs.

import package::shared::a::{a, a_at};
import package::shared::grid::flat_workgroup;
import package::shared::order::order_key;
import package::shared::view::{View, position, unravel};

struct Params {
    // Three outer sizes, and the elements or pairs of a row.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The first row of the dispatch, and the number of its rows.
    first_row: u32,
    rows: u32,
    // The base-2 logarithms of the elements of a block, at most 11, and of all blocks of a
    // workgroup.
    log2_block: u32,
    log2_group: u32,
    // The blocks of a row.
    blocks: u32,
    // The stages to run, powers of two. The last one gives sorted runs of its length.
    first_stage: u32,
    last_stage: u32,
    // The largest stage of the rows. Runs of smaller stages alternate in direction.
    row_stage: u32,
    // The number of pairs kept of each block, or of indices of each row.
    keep: u32,
    descending: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;

// Whether `a` holds pairs.
override FROM_PAIRS: u32 = 0u;
// Whether the results are pairs.
override TO_PAIRS: u32 = 0u;

// A pair that comes after every element.
const NOTHING = vec2<u32>(0xffffffffu, 0xffffffffu);

var<workgroup> pairs: array<vec2<u32>, 2048>;

fn is_after(x: vec2<u32>, y: vec2<u32>) -> bool {
    return x.x > y.x || (x.x == y.x && x.y > y.y);
}

fn load(row: u32, i: u32) -> vec2<u32> {
    if row >= params.rows || i >= params.dims.w {
        return NOTHING;
    }
    if FROM_PAIRS == 1u {
        let at = 2u * (row * params.dims.w + i);
        return vec2<u32>(a[at], a[at + 1u]);
    }
    let outer = unravel(params.first_row + row, vec4<u32>(1u, params.dims.xyz));
    let start = position(params.a, vec4<u32>(outer.yzw, 0u));
    let key = order_key(a_at(start + i * params.a.strides.w));
    return vec2<u32>(select(key, ~key, params.descending == 1u), i);
}

@compute @workgroup_size(256)
fn argsort(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block_len = 1u << params.log2_block;
    let first = flat_workgroup(workgroup, workgroups) << (params.log2_group - params.log2_block);
    let group_len = 1u << params.log2_group;
    for (var slot = lane; slot < group_len; slot += 256u) {
        let block = first + (slot >> params.log2_block);
        let row = block / params.blocks;
        let start = (block - row * params.blocks) * block_len;
        pairs[slot] = load(row, start + (slot & (block_len - 1u)));
    }
    workgroupBarrier();
    for (var stage = params.first_stage; stage <= params.last_stage; stage <<= 1u) {
        for (var reach = min(stage, block_len) >> 1u; reach > 0u; reach >>= 1u) {
            for (var i = lane; i < group_len / 2u; i += 256u) {
                let low = i & (reach - 1u);
                let slot = ((i - low) << 1u) | low;
                let block = (first + (slot >> params.log2_block)) % params.blocks;
                let at = (block << params.log2_block) + (slot & (block_len - 1u));
                let x = pairs[slot];
                let y = pairs[slot + reach];
                let falls = stage < params.row_stage && (at & stage) != 0u;
                if is_after(x, y) != falls {
                    pairs[slot] = y;
                    pairs[slot + reach] = x;
                }
            }
            workgroupBarrier();
        }
    }
    for (var slot = lane; slot < group_len; slot += 256u) {
        let block = first + (slot >> params.log2_block);
        let row = block / params.blocks;
        let i = slot & (block_len - 1u);
        if row >= params.rows {
            continue;
        }
        if TO_PAIRS == 1u {
            if i < params.keep {
                let at = 2u * (block * params.keep + i);
                results[at] = pairs[slot].x;
                results[at + 1u] = pairs[slot].y;
            }
        } else {
            let at = (block - row * params.blocks) * block_len + i;
            if at < params.keep {
                let outer = unravel(params.first_row + row, vec4<u32>(1u, params.dims.xyz));
                let start = position(params.out, vec4<u32>(outer.yzw, 0u));
                results[start + at * params.out.strides.w] = pairs[slot].y;
            }
        }
    }
}

// One exchange of a stage, in place, between pairs that are `keep` apart, at least a block.
@compute @workgroup_size(256)
fn argsort_exchange(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n = params.dims.w;
    let i = flat_workgroup(workgroup, workgroups) * 256u + lane;
    if i >= params.rows * (n >> 1u) {
        return;
    }
    let reach = params.keep;
    let low = i & (reach - 1u);
    let at = ((i - low) << 1u) | low;
    let other = at + reach;
    let x = vec2<u32>(results[2u * at], results[2u * at + 1u]);
    let y = vec2<u32>(results[2u * other], results[2u * other + 1u]);
    let falls = params.last_stage < n && (at & params.last_stage) != 0u;
    if is_after(x, y) != falls {
        results[2u * at] = y.x;
        results[2u * at + 1u] = y.y;
        results[2u * other] = x.x;
        results[2u * other + 1u] = x.y;
    }
}
