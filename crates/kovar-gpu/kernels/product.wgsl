// A product of matrices for each batch, in tiles.

import package::shared::grid::flat_workgroup;
import package::shared::product::{Bases, a_block, b_block, bases_of, finish, params};
import package::shared::tile::{
    Block, Share, Sums, TILE_GROUPS, TILE_INVOCATIONS, tile_depth, tile_multiply, tile_share,
    tile_span, tile_stage,
};

// The first line of the tile in each factor.
struct Corner {
    row: u32,
    column: u32,
}

fn load(bases: Bases, corner: Corner, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    if share.is_b {
        return b_block(bases.b, corner.column + share.line, k + share.k);
    }
    return a_block(bases.a, corner.row + share.line, k + share.k);
}

fn finish_row(bases: Bases, row: u32, column: u32, sums: vec4<f32>) {
    finish(bases, row, column, sums.x);
    finish(bases, row, column + 1u, sums.y);
    finish(bases, row, column + 2u, sums.z);
    finish(bases, row, column + 3u, sums.w);
}

fn finish_block(bases: Bases, row: u32, column: u32, sums: Block) {
    finish_row(bases, row, column, sums.r0);
    finish_row(bases, row + 1u, column, sums.r1);
    finish_row(bases, row + 2u, column, sums.r2);
    finish_row(bases, row + 3u, column, sums.r3);
}

@compute @workgroup_size(TILE_INVOCATIONS)
fn product(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let size = params.size;
    let span = tile_span();
    let rows = (size.x + span - 1u) / span;
    let columns = (size.y + span - 1u) / span;
    let batches = params.batch.x * params.batch.y * params.batch.z * params.batch.w;
    let tile = flat_workgroup(workgroup, workgroups);
    if tile >= rows * columns * batches {
        return;
    }
    // Neighbours share the lines of `b`, which are weights as a rule.
    let corner = Corner(tile % rows * span, tile / rows % columns * span);
    let bases = bases_of(tile / rows / columns);
    let share = tile_share(lane, params.steps.y == 1u, params.steps.w == 1u);
    var sums = Sums();
    var block = load(bases, corner, share, 0u);
    for (var k = 0u; k < size.z; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        block = load(bases, corner, share, k + tile_depth());
        sums = tile_multiply(sums, lane);
    }
    let row = corner.row + (lane >> 4u) * 4u;
    let column = corner.column + (lane & 15u) * 4u;
    finish_block(bases, row, column, sums.near);
    if TILE_GROUPS == 2u {
        finish_block(bases, row, column + 64u, sums.right);
        finish_block(bases, row + 64u, column, sums.below);
        finish_block(bases, row + 64u, column + 64u, sums.far);
    }
}
