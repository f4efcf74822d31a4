// Products of rows of `a` with the matrix that each row's id names, in tiles: a workgroup has an
// expert, 64 of the expert's columns, and all pairs that name the expert.

import package::shared::experts::{bases_of_pair, expert_of, experts, first_expert, own_experts};
@if(wide) import package::shared::factor_a::{a_four, a_k_stride};
@if(!wide) import package::shared::factor_a::{a_element, a_k_stride};
import package::shared::factor_b::{b_block, b_k_stride};
import package::shared::grid::flat_workgroup;
import package::shared::product::{finish_four, params};
import package::shared::share::Share;
import package::shared::tile::{
    Sums, TILE_INVOCATIONS, tile_depth, tile_multiply, tile_share, tile_span, tile_stage,
};

// Pairs of the expert: those of a tile, and those that a search may find beyond them.
var<workgroup> pairs: array<u32, 320>;
var<workgroup> found: atomic<u32>;
var<workgroup> found_now: u32;

// Where four rows of `a` begin, and how many of them exist.
struct FourRows {
    bases: vec4<u32>,
    count: u32,
}

fn row_at(i: u32, rows: u32) -> u32 {
    return bases_of_pair(pairs[min(i, rows - 1u)], experts()).a;
}

fn four_rows(i: u32, rows: u32) -> FourRows {
    let bases = vec4<u32>(
        row_at(i, rows),
        row_at(i + 1u, rows),
        row_at(i + 2u, rows),
        row_at(i + 3u, rows),
    );
    return FourRows(bases, select(0u, rows - i, i < rows));
}

@if(wide)
fn a_run_at(four: FourRows, i: u32, k: u32) -> vec4<f32> {
    if i >= four.count || k >= params.size.z {
        return vec4<f32>();
    }
    return a_four(four.bases[i] + k);
}
@if(wide)
fn rows_block(four: FourRows, k: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(
        a_run_at(four, 0u, k),
        a_run_at(four, 1u, k),
        a_run_at(four, 2u, k),
        a_run_at(four, 3u, k),
    ));
}
@if(!wide)
fn a_element_at(four: FourRows, i: u32, k: u32) -> f32 {
    if i >= four.count || k >= params.size.z {
        return 0.0;
    }
    return a_element(four.bases[i] + k * a_k_stride());
}
@if(!wide)
fn a_column_at(four: FourRows, k: u32) -> vec4<f32> {
    return vec4<f32>(
        a_element_at(four, 0u, k),
        a_element_at(four, 1u, k),
        a_element_at(four, 2u, k),
        a_element_at(four, 3u, k),
    );
}
@if(!wide)
fn rows_block(four: FourRows, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        a_column_at(four, k),
        a_column_at(four, k + 1u),
        a_column_at(four, k + 2u),
        a_column_at(four, k + 3u),
    );
}

fn load(base: u32, four: FourRows, column: u32, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    if share.is_b {
        return b_block(base, column + share.row, k + share.k);
    }
    return rows_block(four, k + share.k);
}

fn finish_row(row: u32, rows: u32, column: u32, sums: vec4<f32>) {
    if row >= rows {
        return;
    }
    let bases = bases_of_pair(pairs[row], experts());
    finish_four(bases, 0u, column, sums);
}

@compute @workgroup_size(TILE_INVOCATIONS)
fn matmul_id(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let span = tile_span();
    let columns = (params.size.y + span - 1u) / span;
    // The first dispatch also writes the pairs without an expert, whose sums are empty.
    let served = own_experts() + select(0u, 1u, first_expert() == 0u);
    let index = flat_workgroup(workgroup, workgroups);
    if index >= columns * served {
        return;
    }
    let column = index % columns * span;
    let own = index / columns;
    let expert = select(experts(), first_expert() + own, own < own_experts());
    let depth = select(0u, params.size.z, own < own_experts());
    let base = bases_of_pair(0u, expert).b;
    let all = params.batch.z * params.batch.w;
    let share = tile_share(lane, a_k_stride() == 1u, b_k_stride() == 1u);
    var searched = 0u;
    var kept = 0u;
    while kept > 0u || searched < all {
        while kept < span && searched < all {
            if lane == 0u {
                atomicStore(&found, kept);
            }
            workgroupBarrier();
            let pair = searched + lane;
            if pair < all && expert_of(pair) == expert {
                pairs[atomicAdd(&found, 1u)] = pair;
            }
            workgroupBarrier();
            if lane == 0u {
                found_now = atomicLoad(&found);
            }
            kept = workgroupUniformLoad(&found_now);
            searched += TILE_INVOCATIONS;
        }
        if kept > 0u {
            let rows = min(kept, span);
            let four = four_rows(share.row, rows);
            var sums = Sums();
            var block = mat4x4<f32>();
            if depth > 0u {
                block = load(base, four, column, share, 0u);
            }
            for (var k = 0u; k < depth; k += tile_depth()) {
                workgroupBarrier();
                tile_stage(share, block);
                workgroupBarrier();
                block = load(base, four, column, share, k + tile_depth());
                sums = tile_multiply(sums, lane);
            }
            let row = (lane >> 4u) * 4u;
            let first = column + (lane & 15u) * 4u;
            finish_row(row, rows, first, sums.near.r0);
            finish_row(row + 1u, rows, first, sums.near.r1);
            finish_row(row + 2u, rows, first, sums.near.r2);
            finish_row(row + 3u, rows, first, sums.near.r3);
            // The remaining pairs move to the front.
            var moved = 0u;
            if lane + rows < kept {
                moved = pairs[lane + rows];
            }
            workgroupBarrier();
            if lane + rows < kept {
                pairs[lane] = moved;
            }
            workgroupBarrier();
            kept -= rows;
        }
    }
}
