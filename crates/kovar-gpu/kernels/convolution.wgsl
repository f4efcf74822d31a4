// A convolution over two dims, or its adjoint, in tiles of pixels and output channels.

import package::shared::convolution::{
    Part, Pixel, Term, finish_pair, image_at, params, part_of, parts, pixel_of, pixels_of, term_of,
    terms_of, weight_at,
};
import package::shared::grid::flat_workgroup;
import package::shared::tile::{
    Block, Share, Sums, TILE_GROUPS, TILE_INVOCATIONS, tile_depth, tile_multiply, tile_share,
    tile_span, tile_stage,
};

// Four pixels, or none.
struct Four {
    p0: Pixel,
    p1: Pixel,
    p2: Pixel,
    p3: Pixel,
}

fn image_term(part: Part, pixels: Four, i: u32) -> vec4<f32> {
    if i >= terms_of(part) {
        return vec4<f32>();
    }
    let term = term_of(part, i);
    return vec4<f32>(
        image_at(part, pixels.p0, term),
        image_at(part, pixels.p1, term),
        image_at(part, pixels.p2, term),
        image_at(part, pixels.p3, term),
    );
}

fn weight_term(part: Part, channel: u32, i: u32) -> vec4<f32> {
    if i >= terms_of(part) {
        return vec4<f32>();
    }
    let term = term_of(part, i);
    return vec4<f32>(
        weight_or_zero(part, channel, term),
        weight_or_zero(part, channel + 1u, term),
        weight_or_zero(part, channel + 2u, term),
        weight_or_zero(part, channel + 3u, term),
    );
}

fn weight_or_zero(part: Part, channel: u32, term: Term) -> f32 {
    if channel >= params.result.y {
        return 0.0;
    }
    return weight_at(part, channel, term);
}

fn load(part: Part, pixels: Four, channel: u32, share: Share, k: u32) -> mat4x4<f32> {
    if !share.any {
        return mat4x4<f32>();
    }
    let i = k + share.k;
    if share.is_b {
        let line = channel + share.line;
        return mat4x4<f32>(
            weight_term(part, line, i),
            weight_term(part, line, i + 1u),
            weight_term(part, line, i + 2u),
            weight_term(part, line, i + 3u),
        );
    }
    return mat4x4<f32>(
        image_term(part, pixels, i),
        image_term(part, pixels, i + 1u),
        image_term(part, pixels, i + 2u),
        image_term(part, pixels, i + 3u),
    );
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

@compute @workgroup_size(TILE_INVOCATIONS)
fn convolution(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let span = tile_span();
    // The first part has the most pixels.
    let tiles = (pixels_of(part_of(0u)) + span - 1u) / span;
    let columns = (params.result.y + span - 1u) / span;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= tiles * columns * parts() {
        return;
    }
    let first_pixel = index % tiles * span;
    let first_channel = index / tiles % columns * span;
    let part = part_of(index / tiles / columns);
    let share = tile_share(lane, false, true);
    let line = first_pixel + share.line;
    let pixels = Four(
        pixel_of(part, line),
        pixel_of(part, line + 1u),
        pixel_of(part, line + 2u),
        pixel_of(part, line + 3u),
    );
    let terms = terms_of(part);
    var sums = Sums();
    var block = load(part, pixels, first_channel, share, 0u);
    for (var k = 0u; k < terms; k += tile_depth()) {
        workgroupBarrier();
        tile_stage(share, block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        block = load(part, pixels, first_channel, share, k + tile_depth());
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
