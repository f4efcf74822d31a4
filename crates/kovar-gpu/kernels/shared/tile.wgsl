// A tile of a product in registers: 256 invocations compute 64 x 64 sums, or 128 x 128, from slices
// of both factors in workgroup memory. An invocation has one block of 4 x 4 sums, or four.

import package::shared::share::{Share, share_of};

// The blocks of an invocation along each side.
override TILE_GROUPS: u32 = 1u;
// Vectors of four rows that a slice of a factor has.
override TILE_VECTORS: u32 = 512u;

const TILE_INVOCATIONS = 256u;

var<workgroup> tile_a: array<vec4<f32>, TILE_VECTORS>;
var<workgroup> tile_b: array<vec4<f32>, TILE_VECTORS>;

// Rows of each factor that a tile has.
fn tile_span() -> u32 {
    return 64u * TILE_GROUPS;
}

// Elements along K that a slice has.
fn tile_depth() -> u32 {
    return TILE_VECTORS / (16u * TILE_GROUPS);
}

fn tile_share(lane: u32, a_k_major: bool, b_k_major: bool) -> Share {
    return share_of(lane, 16u * TILE_GROUPS, tile_depth() / 4u, a_k_major, b_k_major);
}

// Where the vector of a quad of rows lies for an element `k`. Quads are shuffled among those of the
// same `k / 4`, so that invocations that write at once use different banks.
fn tile_place(quad: u32, k: u32) -> u32 {
    return k * 16u * TILE_GROUPS + (quad ^ (((k >> 2u) & 3u) << 1u));
}

// Writes a share to workgroup memory. A column of the block has the elements of one `k`.
fn tile_stage(share: Share, block: mat4x4<f32>) {
    if !share.any {
        return;
    }
    let place = tile_place(share.row / 4u, share.k);
    let step = 16u * TILE_GROUPS;
    if share.is_b {
        tile_b[place] = block[0];
        tile_b[place + step] = block[1];
        tile_b[place + 2u * step] = block[2];
        tile_b[place + 3u * step] = block[3];
    } else {
        tile_a[place] = block[0];
        tile_a[place + step] = block[1];
        tile_a[place + 2u * step] = block[2];
        tile_a[place + 3u * step] = block[3];
    }
}

// Sums of four rows, a vector of four columns each.
struct Block {
    r0: vec4<f32>,
    r1: vec4<f32>,
    r2: vec4<f32>,
    r3: vec4<f32>,
}

// The blocks of an invocation, whose rows in the tile are `4 i` to `4 i + 3`, and in a tile of 128
// also those 64 further on. Columns likewise.
struct Sums {
    near: Block,
    right: Block,
    below: Block,
    far: Block,
}

fn hot_block(sums: Block, a: vec4<f32>, b: vec4<f32>) -> Block {
    return Block(
        fma(vec4<f32>(a.x), b, sums.r0),
        fma(vec4<f32>(a.y), b, sums.r1),
        fma(vec4<f32>(a.z), b, sums.r2),
        fma(vec4<f32>(a.w), b, sums.r3),
    );
}

fn hot_k(sums: Sums, a: u32, b: u32) -> Sums {
    let a_near = tile_a[a];
    let b_near = tile_b[b];
    var next = sums;
    next.near = hot_block(sums.near, a_near, b_near);
    if TILE_GROUPS == 2u {
        let a_far = tile_a[a + 16u];
        let b_far = tile_b[b + 16u];
        next.right = hot_block(sums.right, a_near, b_far);
        next.below = hot_block(sums.below, a_far, b_near);
        next.far = hot_block(sums.far, a_far, b_far);
    }
    return next;
}

// Adds the products of elements `k` to `k + 3` of the slice, `k` a multiple of 4.
fn hot_four_k(sums: Sums, lane: u32, k: u32) -> Sums {
    let step = 16u * TILE_GROUPS;
    let a = tile_place(lane >> 4u, k);
    let b = tile_place(lane & 15u, k);
    var next = hot_k(sums, a, b);
    next = hot_k(next, a + step, b + step);
    next = hot_k(next, a + 2u * step, b + 2u * step);
    return hot_k(next, a + 3u * step, b + 3u * step);
}

// The sums of the products of a slice, added to `sums`.
fn tile_multiply(sums: Sums, lane: u32) -> Sums {
    var next = sums;
    for (var k = 0u; k < tile_depth(); k += 4u) {
        next = hot_four_k(next, lane, k);
    }
    return next;
}
