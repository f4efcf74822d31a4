// A tile of a convolution in registers.

import package::shared::convolution::{Corner, Phase, depth_of, finish_pair};
import package::shared::convolution_block::{Four, four_pixels, image_block, weight_block};
import package::shared::share::Share;
import package::shared::tile::{
    Block, Sums, TILE_GROUPS, tile_depth, tile_multiply, tile_share, tile_stage,
};

fn load_share(corner: Corner, pixels: Four, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    if share.is_b {
        return weight_block(corner.phase, corner.channel + share.row, k + share.k);
    }
    return image_block(corner.phase, pixels, k + share.k);
}

// Rows are pixels, columns channels.
fn finish_block(phase: Phase, pixel: u32, channel: u32, sums: Block) {
    finish_pair(phase, pixel, channel, sums.r0.x, sums.r1.x);
    finish_pair(phase, pixel, channel + 1u, sums.r0.y, sums.r1.y);
    finish_pair(phase, pixel, channel + 2u, sums.r0.z, sums.r1.z);
    finish_pair(phase, pixel, channel + 3u, sums.r0.w, sums.r1.w);
    finish_pair(phase, pixel + 2u, channel, sums.r2.x, sums.r3.x);
    finish_pair(phase, pixel + 2u, channel + 1u, sums.r2.y, sums.r3.y);
    finish_pair(phase, pixel + 2u, channel + 2u, sums.r2.z, sums.r3.z);
    finish_pair(phase, pixel + 2u, channel + 3u, sums.r2.w, sums.r3.w);
}

// Computes and writes the tile at a corner. All invocations of a workgroup call it.
fn tiled_convolution(corner: Corner, lane: u32) {
    let share = tile_share(lane, false, true);
    let pixels = four_pixels(corner.phase, corner.pixel + share.row);
    let depth = depth_of(corner.phase);
    var sums = Sums();
    var block = load_share(corner, pixels, share, 0u);
    for (var k = 0u; k < depth; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is loaded while this one is multiplied.
        block = load_share(corner, pixels, share, k + tile_depth());
        sums = tile_multiply(sums, lane);
    }
    let pixel = corner.pixel + (lane >> 4u) * 4u;
    let channel = corner.channel + (lane & 15u) * 4u;
    finish_block(corner.phase, pixel, channel, sums.near);
    if TILE_GROUPS == 2u {
        finish_block(corner.phase, pixel, channel + 64u, sums.right);
        finish_block(corner.phase, pixel + 64u, channel, sums.below);
        finish_block(corner.phase, pixel + 64u, channel + 64u, sums.far);
    }
}
