// S = S diag(w) + (S a) b^T + v k^T, y = S r, token by token, with the state S updated in place
// (RWKV-7).

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::c::c_at;
import package::shared::d::d_at;
import package::shared::e::e_at;
import package::shared::f::f_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::put;
import package::shared::view::{View, position};

struct Params {
    // Tokens, heads, and the size of a head, which is also the number of the state's rows and
    // columns.
    tokens: u32,
    heads: u32,
    n: u32,
    // The base-2 logarithm of the lanes that share a row of the state; each has 16 columns.
    log2_lanes: u32,
    // The workgroups of a head.
    head_workgroups: u32,
    // The index of the run-time scalar with the number of valid tokens; 64 if all are valid.
    n_valid: u32,
    // The index of the first token.
    first_token: u32,
    out: View,
    r: View,
    w: View,
    k: View,
    v: View,
    a: View,
    b: View,
    state: View,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(8) var<storage, read_write> state: array<f32>;
@group(0) @binding(9) var<uniform> scalars: array<vec4<i32>, 16>;

// w, k, a, b and r of two consecutive tokens, in quads of elements: at most 64 for a vector.
var<workgroup> vectors: array<vec4<f32>, 640>;
var<workgroup> sums: array<vec4<f32>, 128>;

fn valid_tokens() -> u32 {
    if params.n_valid >= 64u {
        return params.tokens;
    }
    let valid = scalars[params.n_valid >> 2u][params.n_valid & 3u];
    return min(params.tokens, u32(max(valid - i32(params.first_token), 0)));
}

// Element `i` of one of the vectors of a token and head, or 0 beyond its end.
fn element(which: u32, at: vec4<u32>, i: u32) -> f32 {
    if i >= params.n {
        return 0.0;
    }
    switch which {
        case 0u { return b_at(position(params.w, at) + i * params.w.strides.w); }
        case 1u { return c_at(position(params.k, at) + i * params.k.strides.w); }
        case 2u { return e_at(position(params.a, at) + i * params.a.strides.w); }
        case 3u { return f_at(position(params.b, at) + i * params.b.strides.w); }
        default { return a_at(position(params.r, at) + i * params.r.strides.w); }
    }
}

// Loads the vectors of a token into `vectors`. All lanes call it.
fn stage(token: u32, head: u32, lane: u32) {
    let quads = 4u << params.log2_lanes;
    let at = vec4<u32>(0u, token, head, 0u);
    for (var i = lane; i < 5u * quads; i += 64u) {
        let which = i / quads;
        let first = 4u * (i - which * quads);
        vectors[(token & 1u) * 320u + which * 64u + i - which * quads] = vec4<f32>(
            element(which, at, first),
            element(which, at, first + 1u),
            element(which, at, first + 2u),
            element(which, at, first + 3u),
        );
    }
}

// A quad of a row of the state. Elements beyond the row are 0.
fn load_state(row: u32, column: u32) -> vec4<f32> {
    let stride = params.state.strides.w;
    let n = params.n;
    var quad = vec4<f32>(0.0);
    if column < n { quad.x = state[row + column * stride]; }
    if column + 1u < n { quad.y = state[row + (column + 1u) * stride]; }
    if column + 2u < n { quad.z = state[row + (column + 2u) * stride]; }
    if column + 3u < n { quad.w = state[row + (column + 3u) * stride]; }
    return quad;
}

// Writes such a quad.
fn store_state(row: u32, column: u32, quad: vec4<f32>) {
    let stride = params.state.strides.w;
    let n = params.n;
    if column < n { state[row + column * stride] = quad.x; }
    if column + 1u < n { state[row + (column + 1u) * stride] = quad.y; }
    if column + 2u < n { state[row + (column + 2u) * stride] = quad.z; }
    if column + 3u < n { state[row + (column + 3u) * stride] = quad.w; }
}

@compute @workgroup_size(64)
fn wkv7(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_workgroup(workgroup, workgroups);
    let inside = number < params.heads * params.head_workgroups;
    let known = select(0u, number, inside);
    let head = known / params.head_workgroups;
    let log2_lanes = params.log2_lanes;
    let lanes = 1u << log2_lanes;
    let own = lane & (lanes - 1u);
    let i = (((known - head * params.head_workgroups) << 6u) + lane) >> log2_lanes;
    let has_row = inside && i < params.n;
    let valid = valid_tokens();
    // The quads of a lane are interleaved with those of others, so that neighbours read neighbours.
    let quad = vec4<u32>(own, own + lanes, own + 2u * lanes, own + 3u * lanes);
    let row = position(params.state, vec4<u32>(0u, head, i, 0u));
    var s0 = vec4<f32>(0.0);
    var s1 = vec4<f32>(0.0);
    var s2 = vec4<f32>(0.0);
    var s3 = vec4<f32>(0.0);
    if has_row {
        s0 = load_state(row, 4u * quad.x);
        s1 = load_state(row, 4u * quad.y);
        s2 = load_state(row, 4u * quad.z);
        s3 = load_state(row, 4u * quad.w);
    }
    if valid > 0u {
        stage(0u, head, lane);
    }
    workgroupBarrier();
    for (var t = 0u; t < valid; t += 1u) {
        if t + 1u < valid {
            stage(t + 1u, head, lane);
        }
        let at = vec4<u32>(0u, t, head, 0u);
        var v = 0.0;
        if has_row {
            v = d_at(position(params.v, at) + i * params.v.strides.w);
        }
        let w = quad + (t & 1u) * 320u;
        let k = w + 64u;
        let a = w + 128u;
        let b = w + 192u;
        let r = w + 256u;
        let removed = dot(s0, vectors[a.x]) + dot(s1, vectors[a.y])
            + dot(s2, vectors[a.z]) + dot(s3, vectors[a.w]);
        s0 *= vectors[w.x];
        s1 *= vectors[w.y];
        s2 *= vectors[w.z];
        s3 *= vectors[w.w];
        let b0 = vectors[b.x];
        let b1 = vectors[b.y];
        let b2 = vectors[b.z];
        let b3 = vectors[b.w];
        s0 += v * vectors[k.x];
        s1 += v * vectors[k.y];
        s2 += v * vectors[k.z];
        s3 += v * vectors[k.w];
        let r0 = vectors[r.x];
        let r1 = vectors[r.y];
        let r2 = vectors[r.z];
        let r3 = vectors[r.w];
        // y = (S diag(w) + v k^T) r + (S a) (b^T r) takes one exchange between lanes for each
        // token.
        let kept = dot(s0, r0) + dot(s1, r1) + dot(s2, r2) + dot(s3, r3);
        let added = dot(b0, r0) + dot(b1, r1) + dot(b2, r2) + dot(b3, r3);
        let slot = (t & 1u) * 64u + lane;
        sums[slot] = vec4<f32>(removed, kept, added, 0.0);
        // Tokens alternate between two halves of workgroup memory, so one barrier for each is
        // enough.
        workgroupBarrier();
        var all = vec4<f32>(0.0);
        for (var j = 0u; j < lanes; j += 1u) {
            all += sums[slot - own + j];
        }
        s0 += all.x * b0;
        s1 += all.x * b1;
        s2 += all.x * b2;
        s3 += all.x * b3;
        if has_row && own == 0u {
            put(position(params.out, at) + i * params.out.strides.w, all.y + all.x * all.z);
        }
    }
    if !has_row {
        return;
    }
    if valid > 0u {
        store_state(row, 4u * quad.x, s0);
        store_state(row, 4u * quad.y, s1);
        store_state(row, 4u * quad.z, s2);
        store_state(row, 4u * quad.w, s3);
    }
    if own == 0u {
        for (var t = valid; t < params.tokens; t += 1u) {
            let at = vec4<u32>(0u, t, head, 0u);
            put(position(params.out, at) + i * params.out.strides.w, 0.0);
        }
    }
}

// For heads of any size: an invocation has a row of the state, which stays in device memory.
@compute @workgroup_size(64)
fn wkv7_wide(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_workgroup(workgroup, workgroups) * 64u + lane;
    let n = params.n;
    if number >= params.heads * n {
        return;
    }
    let head = number / n;
    let i = number - head * n;
    let row = position(params.state, vec4<u32>(0u, head, i, 0u));
    let stride = params.state.strides.w;
    let valid = valid_tokens();
    for (var t = 0u; t < params.tokens; t += 1u) {
        let at = vec4<u32>(0u, t, head, 0u);
        var y = 0.0;
        if t < valid {
            var removed = 0.0;
            for (var j = 0u; j < n; j += 1u) {
                removed += state[row + j * stride] * element(2u, at, j);
            }
            let v = d_at(position(params.v, at) + i * params.v.strides.w);
            for (var j = 0u; j < n; j += 1u) {
                let place = row + j * stride;
                let s = state[place] * element(0u, at, j) + removed * element(3u, at, j)
                    + v * element(1u, at, j);
                state[place] = s;
                y += s * element(4u, at, j);
            }
        }
        put(position(params.out, at) + i * params.out.strides.w, y);
    }
}
