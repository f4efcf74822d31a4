// A convolution over two dims, or its adjoint, in tiles of cooperative matrices of pixels and
// output channels.

import package::shared::convolution::{
    A_DTYPE, B_DTYPE, Corner, corner_of, depth_of, finish_pair, params,
};
import package::shared::convolution_block::{Four, four_pixels};
import package::shared::convolution_tile::{load_share, tiled_convolution};
import package::shared::grid::flat_workgroup;
@if(half) import package::shared::halves::{peaks_begin, peaks_fit, peaks_note};
import package::shared::matrix::{
    MATRIX, MATRIX_COUNT, MATRIX_DEPTH, MATRIX_INVOCATIONS, MATRIX_SPAN, matrix_begin,
    matrix_column_of, matrix_store, matrix_multiply, matrix_row_of, matrix_share, matrix_stage,
    matrix_sum,
};
import package::shared::share::Share;

@if(matrices) enable wgpu_cooperative_matrix;
@if(matrices && half) enable f16;

fn load(corner: Corner, pixels: Four, share: Share, k: u32) -> mat4x4<f32> {
    let block = load_share(corner, pixels, share, k);
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
    let corner = corner_of(flat_workgroup(workgroup, workgroups), MATRIX_SPAN, MATRIX_SPAN);
    if !corner.inside {
        return;
    }
    @if(!matrices)
    let subgroup = lane / 32u;
    matrix_begin(lane, subgroup, params.kernel.w);
    @if(half)
    peaks_begin(lane);
    let first = matrix_share(lane, false, true);
    let second = matrix_share(lane + MATRIX_INVOCATIONS, false, true);
    // A second share, if any, is of the weight, so one set of pixels is enough.
    let pixels = four_pixels(corner.phase, corner.pixel + first.row);
    let depth = depth_of(corner.phase);
    var first_block = load(corner, pixels, first, 0u);
    var second_block = load(corner, pixels, second, 0u);
    for (var k = 0u; k < depth; k += MATRIX_DEPTH) {
        workgroupBarrier();
        matrix_stage(first, first_block);
        matrix_stage(second, second_block);
        workgroupBarrier();
        // The next slice is loaded while this one is multiplied.
        first_block = load(corner, pixels, first, k + MATRIX_DEPTH);
        second_block = load(corner, pixels, second, k + MATRIX_DEPTH);
        matrix_multiply();
    }
    @if(half)
    if !peaks_fit(lane) {
        // Computes the tile again in F32, a quarter at a time.
        for (var i = 0u; i < 4u; i++) {
            var quarter = corner;
            quarter.pixel += i / 2u * 64u;
            quarter.channel += i % 2u * 64u;
            tiled_convolution(quarter, lane);
        }
        return;
    }
    for (var i = 0u; i < MATRIX_COUNT; i++) {
        matrix_store(i);
        let pixel = corner.pixel + matrix_row_of(i);
        let channel = corner.channel + matrix_column_of(i);
        for (var at = lane & 31u; at < MATRIX * MATRIX / 2u; at += 32u) {
            let row = at % (MATRIX / 2u) * 2u;
            let column = at / (MATRIX / 2u);
            let sum = matrix_sum(row, column);
            let next = matrix_sum(row + 1u, column);
            finish_pair(corner.phase, pixel + row, channel + column, sum, next);
        }
    }
}
