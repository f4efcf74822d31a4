// Copies bytes between ranges of any alignment.

import package::shared::grid::{WORKGROUP, flat_workgroup};

struct Params {
    // Words of the target that are written, whole or in part.
    words: u32,
    // The first of these words, counted from the binding's start.
    at: u32,
    // Bytes of the first word that lie before the range.
    skew: u32,
    // Bytes to copy.
    len: u32,
    // The first byte of the source, counted from the binding's start.
    source: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> a: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn bytes_copy(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    if i >= params.words {
        return;
    }
    let first = i * 4u;
    let end = params.skew + params.len;
    if first >= params.skew && first + 4u <= end {
        let from_byte = params.source + first - params.skew;
        let shift = (from_byte & 3u) * 8u;
        var word = a[from_byte >> 2u];
        if shift != 0u {
            word = (word >> shift) | (a[(from_byte >> 2u) + 1u] << (32u - shift));
        }
        out[params.at + i] = word;
        return;
    }
    var word = out[params.at + i];
    for (var k = 0u; k < 4u; k++) {
        let byte = first + k;
        if byte >= params.skew && byte < end {
            let from_byte = params.source + byte - params.skew;
            let value = (a[from_byte >> 2u] >> ((from_byte & 3u) * 8u)) & 0xffu;
            word = (word & ~(0xffu << (k * 8u))) | (value << (k * 8u));
        }
    }
    out[params.at + i] = word;
}
