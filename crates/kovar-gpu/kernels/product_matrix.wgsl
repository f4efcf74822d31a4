// A product of matrices for each batch, in tiles of cooperative matrices.

import package::shared::grid::flat_workgroup;
@if(half) import package::shared::halves::{peaks_begin, peaks_fit, peaks_note};
import package::shared::matrix::{
    MATRIX, MATRIX_COUNT, MATRIX_DEPTH, MATRIX_INVOCATIONS, MATRIX_SPAN, MatrixShare, matrix_begin,
    matrix_column_of, matrix_leave, matrix_multiply, matrix_row_of, matrix_share, matrix_stage,
    matrix_sum,
};
import package::shared::product::{
    A_DTYPE, B_DTYPE, Bases, a_block, b_block, bases_of, finish, params,
};
import package::shared::product_tile::{Corner, tiled_product};

@if(matrices) enable wgpu_cooperative_matrix;
@if(matrices && half) enable f16;

fn load(bases: Bases, corner: Corner, share: MatrixShare, k: u32) -> mat4x4<f32> {
    var block = mat4x4<f32>();
    if share.any {
        if share.is_b {
            block = b_block(bases.b, corner.column + share.line, k + share.k);
        } else {
            block = a_block(bases.a, corner.row + share.line, k + share.k);
        }
    }
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
    let size = params.size;
    let span = MATRIX_SPAN;
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
    @if(!matrices)
    let subgroup = lane / 32u;
    matrix_begin(lane, subgroup, size.w);
    @if(half)
    peaks_begin(lane);
    let a_along_k = params.steps.y == 1u;
    let b_along_k = params.steps.w == 1u;
    let first = matrix_share(lane, a_along_k, b_along_k);
    let second = matrix_share(lane + MATRIX_INVOCATIONS, a_along_k, b_along_k);
    var first_block = load(bases, corner, first, 0u);
    var second_block = load(bases, corner, second, 0u);
    for (var k = 0u; k < size.z; k += MATRIX_DEPTH) {
        workgroupBarrier();
        matrix_stage(first, first_block);
        matrix_stage(second, second_block);
        workgroupBarrier();
        // The next slice is on its way while this one is multiplied.
        first_block = load(bases, corner, first, k + MATRIX_DEPTH);
        second_block = load(bases, corner, second, k + MATRIX_DEPTH);
        matrix_multiply();
    }
    @if(half)
    if !peaks_fit(lane) {
        // In f32.
        for (var i = 0u; i < 4u; i++) {
            let part = Corner(corner.row + i / 2u * 64u, corner.column + i % 2u * 64u);
            tiled_product(bases, part, lane);
        }
        return;
    }
    for (var i = 0u; i < MATRIX_COUNT; i++) {
        matrix_leave(i);
        let row = corner.row + matrix_row_of(i);
        let column = corner.column + matrix_column_of(i);
        for (var at = lane & 31u; at < MATRIX * MATRIX; at += 32u) {
            let sum = matrix_sum(at / MATRIX, at % MATRIX);
            finish(bases, row + at / MATRIX, column + at % MATRIX, sum);
        }
    }
}
