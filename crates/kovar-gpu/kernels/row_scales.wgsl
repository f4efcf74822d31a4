// y[row] = max |a[row, j]| / 127, or NaN if an element of the row is NaN.

import package::shared::a::a_at;
import package::shared::grid::flat_workgroup;
import package::shared::out::put;
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    // The dims of y, the rows of a.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The number of elements of a row, and their stride.
    columns: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// Invocations for each row, a power of two.
override LANES: u32 = 256u;

var<workgroup> greatest: array<u32, 256>;

// A magnitude divided by 127, rounded. Small ones are divided in integers, because devices may take
// denormals for 0.
fn scale_of(magnitude: u32) -> f32 {
    if magnitude >= 0x4000000u {
        return bitcast<f32>(magnitude) / 127.0;
    }
    let exponent = magnitude >> 23u;
    // The magnitude in units of 2^-149.
    var units = magnitude;
    if exponent > 0u {
        units = ((magnitude & 0x7fffffu) | 0x800000u) << (exponent - 1u);
    }
    let quotient = units / 127u;
    // The bits of such a small float are its number of units.
    return bitcast<f32>(quotient + select(0u, 1u, units - quotient * 127u > 63u));
}

@compute @workgroup_size(256)
fn row_scales(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let dims = params.dims;
    let row = flat_workgroup(workgroup, workgroups) * (256u / LANES) + lane / LANES;
    let inside = row < count_of(dims);
    let first = lane % LANES;
    var at = vec4<u32>(0u);
    var most = 0u;
    if inside {
        at = unravel(row, dims);
        let start = position(params.a, at);
        // Magnitudes are in the order of their bits, NaN above infinity.
        for (var i = first; i < params.columns.x; i += LANES) {
            most = max(most, bitcast<u32>(a_at(start + i * params.columns.y)) & 0x7fffffffu);
        }
    }
    greatest[lane] = most;
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        workgroupBarrier();
        if first < step {
            greatest[lane] = max(greatest[lane], greatest[lane + step]);
        }
    }
    if inside && first == 0u {
        let magnitude = greatest[lane];
        put(position(params.out, at), scale_of(magnitude));
    }
}
