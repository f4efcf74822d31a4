// y = the maximum or the mean of a sliding window.

import package::shared::a::a_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::math::{is_nan, or_bits, NAN_BITS};
import package::shared::out::{PER, put, put_pair};
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    // Along each axis: the window's size, its stride, the padding, and the size of a.
    rows: vec4<u32>,
    columns: vec4<u32>,
    // The first bound rows of y and of a.
    first: vec4<u32>,
    // The divisor of sums; 0 for the number of elements inside a.
    divisor: vec4<f32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for the maximum, 0 for the mean.
override GREATEST: u32 = 0u;

// The elements of an axis that the window at `i` covers.
fn covered(i: u32, axis: vec4<u32>) -> vec2<u32> {
    let start = i * axis.y;
    let end = min(start + axis.x - min(start + axis.x, axis.z), axis.w);
    return vec2<u32>(start - min(start, axis.z), end);
}

// Bits as unsigned integers in the order of the numbers.
fn ordered(bits: u32) -> u32 {
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn pooled(at: vec4<u32>) -> f32 {
    let image = params.a.offset + at.x * params.a.strides.x + at.y * params.a.strides.y;
    let rows = covered(at.z + params.first.x, params.rows);
    let columns = covered(at.w, params.columns);
    var greatest = 0u;
    var has_nan = false;
    var sum = 0.0;
    for (var row = rows.x; row < rows.y; row++) {
        let start = image + (row - params.first.y) * params.a.strides.z;
        var of_row = 0.0;
        for (var column = columns.x; column < columns.y; column++) {
            let value = a_at(start + column * params.a.strides.w);
            if GREATEST == 1u {
                greatest = max(greatest, ordered(bitcast<u32>(value)));
                has_nan = has_nan || is_nan(value);
            } else {
                of_row += value;
            }
        }
        sum += of_row;
    }
    if GREATEST == 1u {
        let bits = select(~greatest, greatest & 0x7fffffffu, greatest >= 0x80000000u);
        return or_bits(bitcast<f32>(bits), NAN_BITS, has_nan);
    }
    let inside = f32(max((rows.y - rows.x) * (columns.y - columns.x), 1u));
    return sum / select(inside, params.divisor.x, params.divisor.x > 0.0);
}

@compute @workgroup_size(WORKGROUP)
fn pool2d(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let dims = params.dims;
    if first >= count_of(dims) {
        return;
    }
    let at = unravel(first, dims);
    let place = position(params.out, at);
    let value = pooled(at);
    if PER == 1u {
        put(place, value);
    } else {
        put_pair(place, value, pooled(at + vec4<u32>(0u, 0u, 0u, 1u)));
    }
}
