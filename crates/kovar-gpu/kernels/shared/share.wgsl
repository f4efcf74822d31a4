// Slices of two factors `a` and `b`, which invocations load into workgroup memory by shares.

// The 4 x 4 elements of a slice that an invocation loads at once. `row` and `k` count from the
// slice's begin.
struct Share {
    any: bool,
    is_b: bool,
    row: u32,
    k: u32,
}

// Share `i` of slices that have this many quads of rows and of elements along K. A factor is read
// along K first if it is K-major, else along its rows.
fn share_of(i: u32, row_quads: u32, k_quads: u32, a_k_major: bool, b_k_major: bool) -> Share {
    let blocks = row_quads * k_quads;
    let is_b = i >= blocks;
    let block = select(i, i - blocks, is_b);
    if select(a_k_major, b_k_major, is_b) {
        return Share(i < 2u * blocks, is_b, block / k_quads * 4u, block % k_quads * 4u);
    }
    return Share(i < 2u * blocks, is_b, block % row_quads * 4u, block / row_quads * 4u);
}
