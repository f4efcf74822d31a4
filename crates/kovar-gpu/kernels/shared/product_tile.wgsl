// A tile of a product of matrices, in registers.

import package::shared::product::{Bases, a_block, b_block, finish, params};
import package::shared::tile::{
    Block, Share, Sums, TILE_GROUPS, tile_depth, tile_multiply, tile_share, tile_stage,
};

// The first line of the tile in each factor.
struct Corner {
    row: u32,
    column: u32,
}

fn tile_load(bases: Bases, corner: Corner, share: Share, k: u32) -> mat4x4<f32> {
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

// Computes and writes the tile at a corner. All invocations of a workgroup call it.
fn tiled_product(bases: Bases, corner: Corner, lane: u32) {
    let share = tile_share(lane, params.steps.y == 1u, params.steps.w == 1u);
    var sums = Sums();
    var block = tile_load(bases, corner, share, 0u);
    for (var k = 0u; k < params.size.z; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        block = tile_load(bases, corner, share, k + tile_depth());
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
