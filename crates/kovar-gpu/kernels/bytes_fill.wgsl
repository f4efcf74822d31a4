// Sets a range of words to a value. Masks select the bytes of the first and of the last word.

import package::shared::grid::{WORKGROUP, flat_workgroup};

struct Params {
    words: u32,
    value: u32,
    first_mask: u32,
    last_mask: u32,
    // The first word, counted from the binding's start.
    at: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn bytes_fill(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    if i >= params.words {
        return;
    }
    var mask = 0xffffffffu;
    if i == 0u {
        mask = params.first_mask;
    }
    if i == params.words - 1u {
        mask &= params.last_mask;
    }
    let at = params.at + i;
    if mask == 0xffffffffu {
        out[at] = params.value;
    } else {
        out[at] = (out[at] & ~mask) | (params.value & mask);
    }
}
