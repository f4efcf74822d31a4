// A convolution over two dims, or its adjoint, in tiles of cooperative matrices of pixels and output
// channels.

import package::shared::convolution::{
    A_DTYPE, B_DTYPE, Part, finish_pair, params, part_of, parts, pixels_of, terms_of,
};
import package::shared::convolution_block::{Four, four_pixels, image_block, weight_block};
import package::shared::convolution_tile::tiled_convolution;
import package::shared::grid::flat_workgroup;
@if(half) import package::shared::halves::{peaks_begin, peaks_fit, peaks_note};
import package::shared::matrix::{
    MATRIX, MATRIX_COUNT, MATRIX_DEPTH, MATRIX_INVOCATIONS, MATRIX_SPAN, MatrixShare, matrix_begin,
    matrix_column_of, matrix_leave, matrix_multiply, matrix_row_of, matrix_share, matrix_stage,
    matrix_sum,
};

@if(matrices) enable wgpu_cooperative_matrix;
@if(matrices && half) enable f16;

fn load(part: Part, pixels: Four, channel: u32, share: MatrixShare, k: u32) -> mat4x4<f32> {
    var block = mat4x4<f32>();
    if share.any {
        if share.is_b {
            block = weight_block(part, channel + share.line, k + share.k);
        } else {
            block = image_block(part, pixels, k + share.k);
        }
    }
    @if(half)
    peaks_note(share.is_b, A_DTYPE, B_DTYPE, block);
    return block;
}

@compute @workgroup_size(MATRIX_INVOCATIONS)
fn convolution_matrix(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(matrices) @builtin(subgroup_id) subgroup: u32,
) {
    let span = MATRIX_SPAN;
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
    @if(!matrices)
    let subgroup = lane / 32u;
    matrix_begin(lane, subgroup, params.kernel.w);
    @if(half)
    peaks_begin(lane);
    let first = matrix_share(lane, false, true);
    let second = matrix_share(lane + MATRIX_INVOCATIONS, false, true);
    // The second shares are of the weight, if there are any.
    let pixels = four_pixels(part, first_pixel + first.line);
    let terms = terms_of(part);
    var first_block = load(part, pixels, first_channel, first, 0u);
    var second_block = load(part, pixels, first_channel, second, 0u);
    for (var k = 0u; k < terms; k += MATRIX_DEPTH) {
        workgroupBarrier();
        matrix_stage(first, first_block);
        matrix_stage(second, second_block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        first_block = load(part, pixels, first_channel, first, k + MATRIX_DEPTH);
        second_block = load(part, pixels, first_channel, second, k + MATRIX_DEPTH);
        matrix_multiply();
    }
    @if(half)
    if !peaks_fit(lane) {
        // In f32.
        for (var i = 0u; i < 4u; i++) {
            let pixel = first_pixel + i / 2u * 64u;
            tiled_convolution(part, pixel, first_channel + i % 2u * 64u, lane);
        }
        return;
    }
    for (var i = 0u; i < MATRIX_COUNT; i++) {
        matrix_leave(i);
        let pixel = first_pixel + matrix_row_of(i);
        let channel = first_channel + matrix_column_of(i);
        for (var at = lane & 31u; at < MATRIX * MATRIX / 2u; at += 32u) {
            let row = at % (MATRIX / 2u) * 2u;
            let column = at / (MATRIX / 2u);
            let sum = matrix_sum(row, column);
            let next = matrix_sum(row + 1u, column);
            finish_pair(part, pixel + row, channel + column, sum, next);
        }
    }
}
