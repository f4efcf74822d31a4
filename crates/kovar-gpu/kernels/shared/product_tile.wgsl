// A tile of a product of matrices, in registers.

import package::shared::factor_a::{a_block, a_k_stride};
import package::shared::factor_b::{b_block, b_k_stride};
import package::shared::product::{Bases, finish_four, params};
import package::shared::share::Share;
import package::shared::tile::{
    Block, Sums, TILE_GROUPS, tile_depth, tile_multiply, tile_share, tile_stage,
};
import package::shared::view::count_of;

// The first row and column of a tile.
struct Corner {
    // Whether there is such a tile.
    inside: bool,
    batch: u32,
    row: u32,
    column: u32,
}

// The corner of tile `i` of those with this span. Neighbouring tiles share rows of `b`, which are
// usually weights.
fn corner_of(i: u32, span: u32) -> Corner {
    let rows = (params.size.x + span - 1u) / span;
    let columns = (params.size.y + span - 1u) / span;
    return Corner(
        i < rows * columns * count_of(params.batch),
        i / rows / columns,
        i % rows * span,
        i / rows % columns * span,
    );
}

fn load_share(bases: Bases, corner: Corner, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    if share.is_b {
        return b_block(bases.b, corner.column + share.row, k + share.k);
    }
    return a_block(bases.a, corner.row + share.row, k + share.k);
}

fn finish_block(bases: Bases, row: u32, column: u32, sums: Block) {
    finish_four(bases, row, column, sums.r0);
    finish_four(bases, row + 1u, column, sums.r1);
    finish_four(bases, row + 2u, column, sums.r2);
    finish_four(bases, row + 3u, column, sums.r3);
}

// Computes and writes the tile at a corner. All invocations of a workgroup call it.
fn tiled_product(bases: Bases, corner: Corner, lane: u32) {
    let share = tile_share(lane, a_k_stride() == 1u, b_k_stride() == 1u);
    var sums = Sums();
    var block = load_share(bases, corner, share, 0u);
    for (var k = 0u; k < params.size.z; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is loaded while this one is multiplied.
        block = load_share(bases, corner, share, k + tile_depth());
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
