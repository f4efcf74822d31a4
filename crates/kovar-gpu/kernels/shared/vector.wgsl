// The sums of few lines of `a` with four lines of `b`, whose terms are contiguous, by a workgroup.

import package::shared::product::{Bases, a_four, a_term, b_four, b_term, finish, params};

// Lines of `a`, at most 8; some may be beyond the last.
override LINES: u32 = 1u;
override VECTOR_WORKGROUP: u32 = 128u;
// Vectors of partial sums: LINES for each invocation.
override PARTIALS: u32 = 128u;

// Eight terms of a line.
struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

// The sums of each line of `a` with four lines of `b`.
struct Lines {
    r0: vec4<f32>,
    r1: vec4<f32>,
    r2: vec4<f32>,
    r3: vec4<f32>,
    r4: vec4<f32>,
    r5: vec4<f32>,
    r6: vec4<f32>,
    r7: vec4<f32>,
}

// Invocations have runs of eight terms: `k` is the first.
@if(wide)
fn a_eight(base: u32, line: u32, k: u32) -> Eight {
    let i = base + min(line, params.size.x - 1u) * params.steps.x + k;
    return Eight(a_four(i), a_four(i + 4u));
}
@if(wide)
fn b_eight(base: u32, line: u32, k: u32) -> Eight {
    let i = base + min(line, params.size.y - 1u) * params.steps.z + k;
    return Eight(b_four(i), b_four(i + 4u));
}

// Neighbours have neighbouring terms, each invocation eight of them at distances of a workgroup.
@if(!wide)
fn a_eight(base: u32, line: u32, k: u32) -> Eight {
    return Eight(
        vec4<f32>(
            a_term(base, line, k),
            a_term(base, line, k + VECTOR_WORKGROUP),
            a_term(base, line, k + 2u * VECTOR_WORKGROUP),
            a_term(base, line, k + 3u * VECTOR_WORKGROUP),
        ),
        vec4<f32>(
            a_term(base, line, k + 4u * VECTOR_WORKGROUP),
            a_term(base, line, k + 5u * VECTOR_WORKGROUP),
            a_term(base, line, k + 6u * VECTOR_WORKGROUP),
            a_term(base, line, k + 7u * VECTOR_WORKGROUP),
        ),
    );
}
@if(!wide)
fn b_eight(base: u32, line: u32, k: u32) -> Eight {
    return Eight(
        vec4<f32>(
            b_term(base, line, k),
            b_term(base, line, k + VECTOR_WORKGROUP),
            b_term(base, line, k + 2u * VECTOR_WORKGROUP),
            b_term(base, line, k + 3u * VECTOR_WORKGROUP),
        ),
        vec4<f32>(
            b_term(base, line, k + 4u * VECTOR_WORKGROUP),
            b_term(base, line, k + 5u * VECTOR_WORKGROUP),
            b_term(base, line, k + 6u * VECTOR_WORKGROUP),
            b_term(base, line, k + 7u * VECTOR_WORKGROUP),
        ),
    );
}

fn hot_dot(a: Eight, b: Eight, sum: f32) -> f32 {
    let terms = fma(a.high, b.high, a.low * b.low);
    return sum + ((terms.x + terms.y) + (terms.z + terms.w));
}

fn hot_line(a: Eight, b0: Eight, b1: Eight, b2: Eight, b3: Eight, sums: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        hot_dot(a, b0, sums.x),
        hot_dot(a, b1, sums.y),
        hot_dot(a, b2, sums.z),
        hot_dot(a, b3, sums.w),
    );
}

fn hot_eight_terms(bases: Bases, column: u32, k: u32, sums: Lines) -> Lines {
    let b0 = b_eight(bases.b, column, k);
    let b1 = b_eight(bases.b, column + 1u, k);
    let b2 = b_eight(bases.b, column + 2u, k);
    let b3 = b_eight(bases.b, column + 3u, k);
    var next = sums;
    next.r0 = hot_line(a_eight(bases.a, 0u, k), b0, b1, b2, b3, sums.r0);
    if LINES > 1u {
        next.r1 = hot_line(a_eight(bases.a, 1u, k), b0, b1, b2, b3, sums.r1);
    }
    if LINES > 2u {
        next.r2 = hot_line(a_eight(bases.a, 2u, k), b0, b1, b2, b3, sums.r2);
        next.r3 = hot_line(a_eight(bases.a, 3u, k), b0, b1, b2, b3, sums.r3);
    }
    if LINES > 4u {
        next.r4 = hot_line(a_eight(bases.a, 4u, k), b0, b1, b2, b3, sums.r4);
        next.r5 = hot_line(a_eight(bases.a, 5u, k), b0, b1, b2, b3, sums.r5);
        next.r6 = hot_line(a_eight(bases.a, 6u, k), b0, b1, b2, b3, sums.r6);
        next.r7 = hot_line(a_eight(bases.a, 7u, k), b0, b1, b2, b3, sums.r7);
    }
    return next;
}

// The sums of each subgroup, or of each invocation, by lines of `a`.
var<workgroup> partial: array<vec4<f32>, PARTIALS>;

// Where a subgroup's or invocation's sums go.
struct Member {
    id: u32,
    count: u32,
    // Whether it writes.
    first: bool,
}

@if(subgroups)
fn reduced(sums: vec4<f32>) -> vec4<f32> {
    return subgroupAdd(sums);
}
@if(!subgroups)
fn reduced(sums: vec4<f32>) -> vec4<f32> {
    return sums;
}

fn leave(member: Member, line: u32, sums: vec4<f32>) {
    let all = reduced(sums);
    if member.first {
        partial[line * member.count + member.id] = all;
    }
}

@if(wide)
fn line_sums(bases: Bases, column: u32, lane: u32, terms: u32) -> Lines {
    var sums = Lines();
    for (var k = lane * 8u; k < terms; k += 8u * VECTOR_WORKGROUP) {
        sums = hot_eight_terms(bases, column, k, sums);
    }
    return sums;
}
@if(!wide)
fn line_sums(bases: Bases, column: u32, lane: u32, terms: u32) -> Lines {
    var sums = Lines();
    for (var k = lane; k < terms; k += 8u * VECTOR_WORKGROUP) {
        sums = hot_eight_terms(bases, column, k, sums);
    }
    return sums;
}

// Computes and writes the results of all lines of `a` and columns `column` to `column + 3`. All
// invocations call it; nothing is written if `writes` is false.
fn vector_product(
    bases: Bases,
    column: u32,
    lane: u32,
    member: Member,
    terms: u32,
    writes: bool,
) {
    let sums = line_sums(bases, column, lane, terms);
    leave(member, 0u, sums.r0);
    if LINES > 1u {
        leave(member, 1u, sums.r1);
    }
    if LINES > 2u {
        leave(member, 2u, sums.r2);
        leave(member, 3u, sums.r3);
    }
    if LINES > 4u {
        leave(member, 4u, sums.r4);
        leave(member, 5u, sums.r5);
        leave(member, 6u, sums.r6);
        leave(member, 7u, sums.r7);
    }
    @if(!subgroups)
    for (var half = VECTOR_WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            for (var line = 0u; line < LINES; line++) {
                let i = line * VECTOR_WORKGROUP + lane;
                partial[i] += partial[i + half];
            }
        }
    }
    workgroupBarrier();
    if lane < LINES && writes {
        let first = lane * member.count;
        var sum = partial[first];
        @if(subgroups)
        for (var i = 1u; i < member.count; i++) {
            sum += partial[first + i];
        }
        finish(bases, lane, column, sum.x);
        finish(bases, lane, column + 1u, sum.y);
        finish(bases, lane, column + 2u, sum.z);
        finish(bases, lane, column + 3u, sum.w);
    }
}
