// The sums of few rows of `a` with four rows of `b`, which is K-major, by a workgroup.

@if(wide) import package::shared::factor_a::{a_four, a_row_stride, a_rows};
@if(wide) import package::shared::factor_b::{b_four, b_row_stride, b_rows};
@if(!wide) import package::shared::factor_a::a_or_zero;
@if(!wide) import package::shared::factor_b::b_or_zero;
import package::shared::product::{Bases, finish_four, params};
import package::shared::subgroups::{all_subgroups, leads_subgroup, own_subgroup};

// Rows of `a`, at most 8. Some may lie outside.
override ROWS: u32 = 1u;
override VECTOR_WORKGROUP: u32 = 128u;
// Vectors of partial sums: ROWS for each invocation.
override PARTIALS: u32 = 128u;

// Eight elements of a row.
struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

// The sums of each row of `a` with four rows of `b`.
struct RowSums {
    r0: vec4<f32>,
    r1: vec4<f32>,
    r2: vec4<f32>,
    r3: vec4<f32>,
    r4: vec4<f32>,
    r5: vec4<f32>,
    r6: vec4<f32>,
    r7: vec4<f32>,
}

// An invocation has runs of eight elements, from `k` on.
@if(wide)
fn a_eight(base: u32, row: u32, k: u32) -> Eight {
    let i = base + min(row, a_rows() - 1u) * a_row_stride() + k;
    return Eight(a_four(i), a_four(i + 4u));
}
@if(wide)
fn b_eight(base: u32, row: u32, k: u32) -> Eight {
    let i = base + min(row, b_rows() - 1u) * b_row_stride() + k;
    return Eight(b_four(i), b_four(i + 4u));
}

// Neighbouring invocations have neighbouring elements. Each has eight, a workgroup apart.
@if(!wide)
fn a_eight(base: u32, row: u32, k: u32) -> Eight {
    return Eight(
        vec4<f32>(
            a_or_zero(base, row, k),
            a_or_zero(base, row, k + VECTOR_WORKGROUP),
            a_or_zero(base, row, k + 2u * VECTOR_WORKGROUP),
            a_or_zero(base, row, k + 3u * VECTOR_WORKGROUP),
        ),
        vec4<f32>(
            a_or_zero(base, row, k + 4u * VECTOR_WORKGROUP),
            a_or_zero(base, row, k + 5u * VECTOR_WORKGROUP),
            a_or_zero(base, row, k + 6u * VECTOR_WORKGROUP),
            a_or_zero(base, row, k + 7u * VECTOR_WORKGROUP),
        ),
    );
}
@if(!wide)
fn b_eight(base: u32, row: u32, k: u32) -> Eight {
    return Eight(
        vec4<f32>(
            b_or_zero(base, row, k),
            b_or_zero(base, row, k + VECTOR_WORKGROUP),
            b_or_zero(base, row, k + 2u * VECTOR_WORKGROUP),
            b_or_zero(base, row, k + 3u * VECTOR_WORKGROUP),
        ),
        vec4<f32>(
            b_or_zero(base, row, k + 4u * VECTOR_WORKGROUP),
            b_or_zero(base, row, k + 5u * VECTOR_WORKGROUP),
            b_or_zero(base, row, k + 6u * VECTOR_WORKGROUP),
            b_or_zero(base, row, k + 7u * VECTOR_WORKGROUP),
        ),
    );
}

fn hot_dot(a: Eight, b: Eight, sum: f32) -> f32 {
    let products = fma(a.high, b.high, a.low * b.low);
    return sum + ((products.x + products.y) + (products.z + products.w));
}

fn hot_row(a: Eight, b0: Eight, b1: Eight, b2: Eight, b3: Eight, sums: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        hot_dot(a, b0, sums.x),
        hot_dot(a, b1, sums.y),
        hot_dot(a, b2, sums.z),
        hot_dot(a, b3, sums.w),
    );
}

fn hot_eight_k(bases: Bases, column: u32, k: u32, sums: RowSums) -> RowSums {
    let b0 = b_eight(bases.b, column, k);
    let b1 = b_eight(bases.b, column + 1u, k);
    let b2 = b_eight(bases.b, column + 2u, k);
    let b3 = b_eight(bases.b, column + 3u, k);
    var next = sums;
    next.r0 = hot_row(a_eight(bases.a, 0u, k), b0, b1, b2, b3, sums.r0);
    if ROWS > 1u {
        next.r1 = hot_row(a_eight(bases.a, 1u, k), b0, b1, b2, b3, sums.r1);
    }
    if ROWS > 2u {
        next.r2 = hot_row(a_eight(bases.a, 2u, k), b0, b1, b2, b3, sums.r2);
        next.r3 = hot_row(a_eight(bases.a, 3u, k), b0, b1, b2, b3, sums.r3);
    }
    if ROWS > 4u {
        next.r4 = hot_row(a_eight(bases.a, 4u, k), b0, b1, b2, b3, sums.r4);
        next.r5 = hot_row(a_eight(bases.a, 5u, k), b0, b1, b2, b3, sums.r5);
        next.r6 = hot_row(a_eight(bases.a, 6u, k), b0, b1, b2, b3, sums.r6);
        next.r7 = hot_row(a_eight(bases.a, 7u, k), b0, b1, b2, b3, sums.r7);
    }
    return next;
}

// The sums of each subgroup, or of each invocation, by rows of `a`.
var<workgroup> partial: array<vec4<f32>, PARTIALS>;

@if(subgroups)
fn store_partial(lane: u32, row: u32, sums: vec4<f32>) {
    let all = subgroupAdd(sums);
    if leads_subgroup {
        partial[row * all_subgroups + own_subgroup] = all;
    }
}
@if(!subgroups)
fn store_partial(lane: u32, row: u32, sums: vec4<f32>) {
    partial[row * VECTOR_WORKGROUP + lane] = sums;
}

fn row_sums(bases: Bases, column: u32, lane: u32, depth: u32) -> RowSums {
    var sums = RowSums();
    @if(wide) let first = lane * 8u;
    @if(!wide) let first = lane;
    for (var k = first; k < depth; k += 8u * VECTOR_WORKGROUP) {
        sums = hot_eight_k(bases, column, k, sums);
    }
    return sums;
}

// Computes the results of all rows of `a` in columns `column` to `column + 3`, with `depth`
// elements along K, and writes them if `writes` is true. All invocations call it.
fn vector_product(bases: Bases, column: u32, lane: u32, depth: u32, writes: bool) {
    let sums = row_sums(bases, column, lane, depth);
    store_partial(lane, 0u, sums.r0);
    if ROWS > 1u {
        store_partial(lane, 1u, sums.r1);
    }
    if ROWS > 2u {
        store_partial(lane, 2u, sums.r2);
        store_partial(lane, 3u, sums.r3);
    }
    if ROWS > 4u {
        store_partial(lane, 4u, sums.r4);
        store_partial(lane, 5u, sums.r5);
        store_partial(lane, 6u, sums.r6);
        store_partial(lane, 7u, sums.r7);
    }
    @if(!subgroups)
    for (var half = VECTOR_WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            for (var row = 0u; row < ROWS; row++) {
                let i = row * VECTOR_WORKGROUP + lane;
                partial[i] += partial[i + half];
            }
        }
    }
    workgroupBarrier();
    if lane < ROWS && writes {
        @if(subgroups) let partials = all_subgroups;
        @if(!subgroups) let partials = VECTOR_WORKGROUP;
        let first = lane * partials;
        var sum = partial[first];
        @if(subgroups)
        for (var i = 1u; i < partials; i++) {
            sum += partial[first + i];
        }
        finish_four(bases, lane, column, sum);
    }
}
