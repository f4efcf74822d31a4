// A tile of a convolution in registers.

import package::shared::convolution::{Part, finish_pair, terms_of};
import package::shared::convolution_block::{Four, four_pixels, image_block, weight_block};
import package::shared::tile::{
    Block, Share, Sums, TILE_GROUPS, tile_depth, tile_multiply, tile_share, tile_stage,
};

fn tile_load(part: Part, pixels: Four, channel: u32, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    if share.is_b {
        return weight_block(part, channel + share.line, k + share.k);
    }
    return image_block(part, pixels, k + share.k);
}

// Rows are pixels, columns channels.
fn finish_block(part: Part, pixel: u32, channel: u32, sums: Block) {
    finish_pair(part, pixel, channel, sums.r0.x, sums.r1.x);
    finish_pair(part, pixel, channel + 1u, sums.r0.y, sums.r1.y);
    finish_pair(part, pixel, channel + 2u, sums.r0.z, sums.r1.z);
    finish_pair(part, pixel, channel + 3u, sums.r0.w, sums.r1.w);
    finish_pair(part, pixel + 2u, channel, sums.r2.x, sums.r3.x);
    finish_pair(part, pixel + 2u, channel + 1u, sums.r2.y, sums.r3.y);
    finish_pair(part, pixel + 2u, channel + 2u, sums.r2.z, sums.r3.z);
    finish_pair(part, pixel + 2u, channel + 3u, sums.r2.w, sums.r3.w);
}

// Computes and writes the tile at a pixel and a channel. All invocations of a workgroup call it.
fn tiled_convolution(part: Part, first_pixel: u32, first_channel: u32, lane: u32) {
    let share = tile_share(lane, false, true);
    let pixels = four_pixels(part, first_pixel + share.line);
    let terms = terms_of(part);
    var sums = Sums();
    var block = tile_load(part, pixels, first_channel, share, 0u);
    for (var k = 0u; k < terms; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        block = tile_load(part, pixels, first_channel, share, k + tile_depth());
        sums = tile_multiply(sums, lane);
    }
    let pixel = first_pixel + (lane >> 4u) * 4u;
    let channel = first_channel + (lane & 15u) * 4u;
    finish_block(part, pixel, channel, sums.near);
    if TILE_GROUPS == 2u {
        finish_block(part, pixel, channel + 64u, sums.right);
        finish_block(part, pixel + 64u, channel, sums.below);
        finish_block(part, pixel + 64u, channel + 64u, sums.far);
    }
}
