// A tile of a product in registers: 256 invocations compute 64 x 64 sums, or 128 x 128, from slices
// of both factors in workgroup memory. An invocation has one block of 4 x 4 sums, or four.

override TILE_GROUPS: u32 = 1u;
// Vectors of four lines that a slice of a factor has.
override TILE_VECTORS: u32 = 512u;

const TILE_INVOCATIONS = 256u;

var<workgroup> tile_a: array<vec4<f32>, TILE_VECTORS>;
var<workgroup> tile_b: array<vec4<f32>, TILE_VECTORS>;

// Lines of a tile.
fn tile_span() -> u32 {
    return 64u * TILE_GROUPS;
}

// Terms of a slice.
fn tile_depth() -> u32 {
    return TILE_VECTORS / (16u * TILE_GROUPS);
}

// The 4 x 4 elements that an invocation brings to workgroup memory, counted from the slice's begin.
struct Share {
    any: bool,
    is_b: bool,
    line: u32,
    k: u32,
}

// `along_k` tells for each factor whether neighbours along k are neighbours in memory; else those
// along lines are.
fn tile_share(lane: u32, a_along_k: bool, b_along_k: bool) -> Share {
    let blocks = TILE_VECTORS / 4u;
    let is_b = lane >= blocks;
    let i = select(lane, lane - blocks, is_b);
    let quads = tile_depth() / 4u;
    let groups = 16u * TILE_GROUPS;
    if select(a_along_k, b_along_k, is_b) {
        return Share(i < blocks, is_b, i / quads * 4u, i % quads * 4u);
    }
    return Share(i < blocks, is_b, i % groups * 4u, i / groups * 4u);
}

// Where the vector of a group of four lines lies for a term, of those that share `k / 4`. Groups
// are shuffled so that the invocations that write at once meet different banks.
fn tile_place(group: u32, k: u32) -> u32 {
    return k * 16u * TILE_GROUPS + (group ^ (((k >> 2u) & 3u) << 1u));
}

// Writes a share, of which a column has the elements of one term.
fn tile_stage(share: Share, block: mat4x4<f32>) {
    if !share.any {
        return;
    }
    let place = tile_place(share.line / 4u, share.k);
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

// Those of rows `4 i` to `4 i + 3` and, of 128, 64 behind; columns likewise.
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

fn hot_term(sums: Sums, a: u32, b: u32) -> Sums {
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

// Adds the products of terms `k` to `k + 3` of the slice, `k` a multiple of 4.
fn hot_terms(sums: Sums, lane: u32, k: u32) -> Sums {
    let step = 16u * TILE_GROUPS;
    let a = tile_place(lane >> 4u, k);
    let b = tile_place(lane & 15u, k);
    var next = hot_term(sums, a, b);
    next = hot_term(next, a + step, b + step);
    next = hot_term(next, a + 2u * step, b + 2u * step);
    return hot_term(next, a + 3u * step, b + 3u * step);
}

// The sums of the products of a slice, added to `sums`.
fn tile_multiply(sums: Sums, lane: u32) -> Sums {
    var next = sums;
    for (var k = 0u; k < tile_depth(); k += 4u) {
        next = hot_terms(next, lane, k);
    }
    return next;
}
