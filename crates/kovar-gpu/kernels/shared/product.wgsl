// A product of matrices for each batch: out[i, j] = alpha sum_k a[i, k] b[j, k] + beta c[i, j], where
// every operand has strides of its own. With the feature `wide` both factors are read in runs of 16
// bytes: they are contiguous along k or along their lines, in whole runs.

import package::shared::c::c_at;
import package::shared::factor::{factor, factor_word, four_of, run_of};
import package::shared::out::put;
import package::shared::view::{View, position, unravel};

struct Params {
    batch: vec4<u32>,
    // Their strides are those of the batches.
    a: View,
    b: View,
    c: View,
    out: View,
    // Lines of `a`, lines of `b`, terms.
    size: vec4<u32>,
    // Strides of lines and of terms: of `a`, then of `b`.
    steps: vec4<u32>,
    // Strides of rows and of columns: of `c`, then of `out`.
    places: vec4<u32>,
    // alpha, beta
    factors: vec4<f32>,
}

@group(0) @binding(0) var<uniform> params: Params;

@if(!wide) @group(0) @binding(2) var<storage, read_write> a: array<u32>;
@if(wide) @group(0) @binding(2) var<storage, read_write> a: array<vec4<u32>>;
@if(!wide) @group(0) @binding(3) var<storage, read_write> b: array<u32>;
@if(wide) @group(0) @binding(3) var<storage, read_write> b: array<vec4<u32>>;

override A_DTYPE: u32 = 0u;
override B_DTYPE: u32 = 0u;
// Whether `c` is added.
override ADDEND: u32 = 0u;

// Where the matrices of a batch begin.
struct Bases {
    a: u32,
    b: u32,
    c: u32,
    out: u32,
}

fn bases_of(batch: u32) -> Bases {
    let at = unravel(batch, params.batch);
    return Bases(
        position(params.a, at),
        position(params.b, at),
        position(params.c, at),
        position(params.out, at),
    );
}

@if(!wide)
fn a_element(i: u32) -> f32 {
    return factor(a[factor_word(i, A_DTYPE)], i, A_DTYPE);
}
@if(!wide)
fn b_element(i: u32) -> f32 {
    return factor(b[factor_word(i, B_DTYPE)], i, B_DTYPE);
}
@if(wide)
fn a_four(i: u32) -> vec4<f32> {
    return four_of(a[run_of(i, A_DTYPE)], i, A_DTYPE);
}
@if(wide)
fn b_four(i: u32) -> vec4<f32> {
    return four_of(b[run_of(i, B_DTYPE)], i, B_DTYPE);
}

// Element `k` of a line of `a`, 0 beyond the last.
@if(!wide)
fn a_term(base: u32, line: u32, k: u32) -> f32 {
    if line >= params.size.x || k >= params.size.z {
        return 0.0;
    }
    return a_element(base + line * params.steps.x + k * params.steps.y);
}
@if(!wide)
fn b_term(base: u32, line: u32, k: u32) -> f32 {
    if line >= params.size.y || k >= params.size.z {
        return 0.0;
    }
    return b_element(base + line * params.steps.z + k * params.steps.w);
}

// Terms `k` to `k + 3` (columns) of four lines (rows), 0 beyond the last.
@if(!wide)
fn a_block(base: u32, line: u32, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        a_lines(base, line, k),
        a_lines(base, line, k + 1u),
        a_lines(base, line, k + 2u),
        a_lines(base, line, k + 3u),
    );
}
@if(!wide)
fn a_lines(base: u32, line: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(
        a_term(base, line, k),
        a_term(base, line + 1u, k),
        a_term(base, line + 2u, k),
        a_term(base, line + 3u, k),
    );
}
@if(!wide)
fn b_block(base: u32, line: u32, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        b_lines(base, line, k),
        b_lines(base, line, k + 1u),
        b_lines(base, line, k + 2u),
        b_lines(base, line, k + 3u),
    );
}
@if(!wide)
fn b_lines(base: u32, line: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(
        b_term(base, line, k),
        b_term(base, line + 1u, k),
        b_term(base, line + 2u, k),
        b_term(base, line + 3u, k),
    );
}

@if(wide)
fn a_run(base: u32, line: u32, k: u32) -> vec4<f32> {
    if line >= params.size.x || k >= params.size.z {
        return vec4<f32>();
    }
    return a_four(base + line * params.steps.x + k * params.steps.y);
}
@if(wide)
fn b_run(base: u32, line: u32, k: u32) -> vec4<f32> {
    if line >= params.size.y || k >= params.size.z {
        return vec4<f32>();
    }
    return b_four(base + line * params.steps.z + k * params.steps.w);
}
@if(wide)
fn a_block(base: u32, line: u32, k: u32) -> mat4x4<f32> {
    if params.steps.y == 1u {
        return transpose(mat4x4<f32>(
            a_run(base, line, k),
            a_run(base, line + 1u, k),
            a_run(base, line + 2u, k),
            a_run(base, line + 3u, k),
        ));
    }
    return mat4x4<f32>(
        a_run(base, line, k),
        a_run(base, line, k + 1u),
        a_run(base, line, k + 2u),
        a_run(base, line, k + 3u),
    );
}
@if(wide)
fn b_block(base: u32, line: u32, k: u32) -> mat4x4<f32> {
    if params.steps.w == 1u {
        return transpose(mat4x4<f32>(
            b_run(base, line, k),
            b_run(base, line + 1u, k),
            b_run(base, line + 2u, k),
            b_run(base, line + 3u, k),
        ));
    }
    return mat4x4<f32>(
        b_run(base, line, k),
        b_run(base, line, k + 1u),
        b_run(base, line, k + 2u),
        b_run(base, line, k + 3u),
    );
}

// Writes the result at a row and a column, if it is there, given its sum.
fn finish(bases: Bases, row: u32, column: u32, sum: f32) {
    if row >= params.size.x || column >= params.size.y {
        return;
    }
    var y = params.factors.x * sum;
    if ADDEND == 1u {
        let place = bases.c + row * params.places.x + column * params.places.y;
        y = fma(params.factors.y, c_at(place), y);
    }
    put(bases.out + row * params.places.z + column * params.places.w, y);
}
