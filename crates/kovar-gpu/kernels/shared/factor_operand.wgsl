// A factor of a product, as rows of K elements. build.rs makes the modules `factor_a` and
// `factor_b` of this one, with the factor's letter in place of `operand`. With the feature `wide`
// the factor is contiguous along K or along its rows and is read in runs of 16 bytes, all of them
// whole.

import package::shared::factor::{factor, factor_word, four_of, run_of};
import package::shared::product::params;

override OPERAND_DTYPE: u32 = 0u;

@if(!wide)
@group(0) @binding(OPERAND_BINDING) var<storage, read_write> operand: array<u32>;
@if(wide)
@group(0) @binding(OPERAND_BINDING) var<storage, read_write> operand: array<vec4<u32>>;

fn operand_rows() -> u32 {
    return params.size[OPERAND_NUMBER];
}
fn operand_row_stride() -> u32 {
    return params.steps[2u * OPERAND_NUMBER];
}
fn operand_k_stride() -> u32 {
    return params.steps[2u * OPERAND_NUMBER + 1u];
}

@if(!wide)
fn operand_element(i: u32) -> f32 {
    return factor(operand[factor_word(i, OPERAND_DTYPE)], i, OPERAND_DTYPE);
}
// Elements `i` to `i + 3`.
@if(wide)
fn operand_four(i: u32) -> vec4<f32> {
    return four_of(operand[run_of(i, OPERAND_DTYPE)], i, OPERAND_DTYPE);
}

// Element `k` of a row, 0 outside.
@if(!wide)
fn operand_or_zero(base: u32, row: u32, k: u32) -> f32 {
    if row >= operand_rows() || k >= params.size.z {
        return 0.0;
    }
    return operand_element(base + row * operand_row_stride() + k * operand_k_stride());
}
// A run of four elements from there on, zeros outside.
@if(wide)
fn operand_run(base: u32, row: u32, k: u32) -> vec4<f32> {
    if row >= operand_rows() || k >= params.size.z {
        return vec4<f32>();
    }
    return operand_four(base + row * operand_row_stride() + k * operand_k_stride());
}

@if(!wide)
fn operand_column(base: u32, row: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(
        operand_or_zero(base, row, k),
        operand_or_zero(base, row + 1u, k),
        operand_or_zero(base, row + 2u, k),
        operand_or_zero(base, row + 3u, k),
    );
}
// Elements `k` to `k + 3` (columns) of four rows, zeros outside.
@if(!wide)
fn operand_block(base: u32, row: u32, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        operand_column(base, row, k),
        operand_column(base, row, k + 1u),
        operand_column(base, row, k + 2u),
        operand_column(base, row, k + 3u),
    );
}
@if(wide)
fn operand_block(base: u32, row: u32, k: u32) -> mat4x4<f32> {
    if operand_k_stride() == 1u {
        return transpose(mat4x4<f32>(
            operand_run(base, row, k),
            operand_run(base, row + 1u, k),
            operand_run(base, row + 2u, k),
            operand_run(base, row + 3u, k),
        ));
    }
    return mat4x4<f32>(
        operand_run(base, row, k),
        operand_run(base, row, k + 1u),
        operand_run(base, row, k + 2u),
        operand_run(base, row, k + 3u),
    );
}
