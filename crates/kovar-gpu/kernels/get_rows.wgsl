// y[i, :] = a[ids[i], :], or zeros for an index outside the table.

import package::shared::a::a;
import package::shared::bits::{SHIFT, SPLIT, bits_of, put_bits, put_word};
import package::shared::factor::{factor, factor_word};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::PER;
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    // The dims of the indices.
    dims: vec4<u32>,
    // Their strides are those of rows. The strides of columns are in `columns`.
    out: View,
    a: View,
    ids: View,
    // The first row of the table that is bound, the number of bound rows, and that of all rows.
    rows: vec4<u32>,
    // The number of columns, and their strides in y and in the table.
    columns: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;

// 1 to decode a table of floats, 0 to keep its bits.
override DECODED: u32 = 0u;
// The table's dtype.
override FROM: u32 = 0u;

fn bits_at(i: u32) -> u32 {
    if DECODED == 1u {
        return bitcast<u32>(factor(a[factor_word(i, FROM)], i, FROM));
    }
    return bits_of(a[i >> SHIFT], i);
}

@compute @workgroup_size(WORKGROUP)
fn get_rows(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    let half = number & SPLIT;
    let per_row = params.columns.x / PER;
    let index = (number >> SPLIT) / per_row;
    let dims = params.dims;
    if index >= count_of(dims) {
        return;
    }
    let column = ((number >> SPLIT) - index * per_row) * PER;
    let at = unravel(index, dims);
    let id = ids[position(params.ids, at)];
    let inside = id >= 0 && u32(id) < params.rows.z;
    let row = u32(id) - params.rows.x;
    // The dispatch with the table's first rows also writes the zeros.
    if (inside && row >= params.rows.y) || (!inside && params.rows.x > 0u) {
        return;
    }
    let place = ((position(params.out, at) + column * params.columns.y) << SPLIT) | half;
    if !inside {
        if PER == 1u {
            put_bits(place, 0u);
        } else {
            put_word(place, 0u);
        }
        return;
    }
    let step = params.columns.z;
    let source = ((params.a.offset + row * params.a.strides.z + column * step) << SPLIT) | half;
    if PER == 1u {
        put_bits(place, bits_at(source));
    } else if PER == 2u {
        put_word(place, bits_at(source) | (bits_at(source + step) << 16u));
    } else {
        let pair = bits_at(source) | (bits_at(source + step) << 8u);
        put_word(place, pair
            | (bits_at(source + 2u * step) << 16u)
            | (bits_at(source + 3u * step) << 24u));
    }
}
