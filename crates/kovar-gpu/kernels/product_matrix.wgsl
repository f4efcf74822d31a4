// A product of matrices for each batch, in tiles of cooperative matrices.

import package::shared::factor_a::{A_DTYPE, a_k_stride};
import package::shared::factor_b::{B_DTYPE, b_k_stride};
import package::shared::grid::flat_workgroup;
@if(half) import package::shared::halves::{peaks_begin, peaks_fit, peaks_note};
import package::shared::matrix::{
    MATRIX, MATRIX_COUNT, MATRIX_DEPTH, MATRIX_INVOCATIONS, MATRIX_SPAN, matrix_begin,
    matrix_column_of, matrix_store, matrix_multiply, matrix_row_of, matrix_share, matrix_stage,
    matrix_sum,
};
import package::shared::product::{Bases, bases_of, finish, params};
import package::shared::product_tile::{Corner, corner_of, load_share, tiled_product};
import package::shared::share::Share;

@if(matrices) enable wgpu_cooperative_matrix;
@if(matrices && half) enable f16;

fn load(bases: Bases, corner: Corner, share: Share, k: u32) -> mat4x4<f32> {
    let block = load_share(bases, corner, share, k);
    @if(half)
    peaks_note(share.is_b, A_DTYPE, B_DTYPE, block);
    return block;
}

@compute @workgroup_size(MATRIX_INVOCATIONS)
fn product_matrix(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(matrices) @builtin(subgroup_id) subgroup: u32,
) {
    let corner = corner_of(flat_workgroup(workgroup, workgroups), MATRIX_SPAN);
    if !corner.inside {
        return;
    }
    let bases = bases_of(corner.batch);
    @if(!matrices)
    let subgroup = lane / 32u;
    matrix_begin(lane, subgroup, params.size.w);
    @if(half)
    peaks_begin(lane);
    let a_k_major = a_k_stride() == 1u;
    let b_k_major = b_k_stride() == 1u;
    let first = matrix_share(lane, a_k_major, b_k_major);
    let second = matrix_share(lane + MATRIX_INVOCATIONS, a_k_major, b_k_major);
    var first_block = load(bases, corner, first, 0u);
    var second_block = load(bases, corner, second, 0u);
    for (var k = 0u; k < params.size.z; k += MATRIX_DEPTH) {
        workgroupBarrier();
        matrix_stage(first, first_block);
        matrix_stage(second, second_block);
        workgroupBarrier();
        // The next slice is loaded while this one is multiplied.
        first_block = load(bases, corner, first, k + MATRIX_DEPTH);
        second_block = load(bases, corner, second, k + MATRIX_DEPTH);
        matrix_multiply();
    }
    @if(half)
    if !peaks_fit(lane) {
        // Computes the tile again in F32, a quarter at a time.
        for (var i = 0u; i < 4u; i++) {
            var quarter = corner;
            quarter.row += i / 2u * 64u;
            quarter.column += i % 2u * 64u;
            tiled_product(bases, quarter, lane);
        }
        return;
    }
    for (var i = 0u; i < MATRIX_COUNT; i++) {
        matrix_store(i);
        let row = corner.row + matrix_row_of(i);
        let column = corner.column + matrix_column_of(i);
        for (var at = lane & 31u; at < MATRIX * MATRIX; at += 32u) {
            let sum = matrix_sum(at / MATRIX, at % MATRIX);
            finish(bases, row + at / MATRIX, column + at % MATRIX, sum);
        }
    }
}
