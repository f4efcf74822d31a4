// A product of matrices for each batch, of few lines of `a`, whose terms are contiguous in `b`: a
// workgroup computes the sums of four lines of `b`.

import package::shared::grid::flat_workgroup;
import package::shared::product::{
    Bases, a_four, a_term, b_four, b_term, bases_of, finish, params,
};

// Lines of `a`, at most 8; some may be beyond the last.
override LINES: u32 = 1u;
override WORKGROUP: u32 = 128u;
// Vectors of partial sums: LINES for each invocation.
override PARTIALS: u32 = 128u;

// Eight terms of a line.
struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

// The sums of each line of `a` with four lines of `b`.
struct Sums {
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
            a_term(base, line, k + WORKGROUP),
            a_term(base, line, k + 2u * WORKGROUP),
            a_term(base, line, k + 3u * WORKGROUP),
        ),
        vec4<f32>(
            a_term(base, line, k + 4u * WORKGROUP),
            a_term(base, line, k + 5u * WORKGROUP),
            a_term(base, line, k + 6u * WORKGROUP),
            a_term(base, line, k + 7u * WORKGROUP),
        ),
    );
}
@if(!wide)
fn b_eight(base: u32, line: u32, k: u32) -> Eight {
    return Eight(
        vec4<f32>(
            b_term(base, line, k),
            b_term(base, line, k + WORKGROUP),
            b_term(base, line, k + 2u * WORKGROUP),
            b_term(base, line, k + 3u * WORKGROUP),
        ),
        vec4<f32>(
            b_term(base, line, k + 4u * WORKGROUP),
            b_term(base, line, k + 5u * WORKGROUP),
            b_term(base, line, k + 6u * WORKGROUP),
            b_term(base, line, k + 7u * WORKGROUP),
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

fn hot_terms(bases: Bases, column: u32, k: u32, sums: Sums) -> Sums {
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

@compute @workgroup_size(WORKGROUP)
fn product_vector(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) subgroup_lane: u32,
) {
    let quads = (params.size.y + 3u) / 4u;
    let batches = params.batch.x * params.batch.y * params.batch.z * params.batch.w;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= quads * batches {
        return;
    }
    let column = index % quads * 4u;
    let bases = bases_of(index / quads);
    var sums = Sums();
    @if(wide)
    for (var k = lane * 8u; k < params.size.z; k += 8u * WORKGROUP) {
        sums = hot_terms(bases, column, k, sums);
    }
    @if(!wide)
    for (var k = lane; k < params.size.z; k += 8u * WORKGROUP) {
        sums = hot_terms(bases, column, k, sums);
    }
    @if(subgroups)
    let member = Member(subgroup, subgroups, subgroup_lane == 0u);
    @if(!subgroups)
    let member = Member(lane, WORKGROUP, true);
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
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            for (var line = 0u; line < LINES; line++) {
                let i = line * WORKGROUP + lane;
                partial[i] += partial[i + half];
            }
        }
    }
    workgroupBarrier();
    if lane < LINES {
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
