// y[ids[i], ..] = a[i, ..]. The other rows do not change.

import package::shared::a::{a, A_DTYPE};
import package::shared::bits::{SHIFT, SPLIT, bits_of, put_bits, put_word};
import package::shared::element::{decode, encode, word_of};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::number::{encode_float, float_number, TYPE_BF16, TYPE_F32};
import package::shared::out::PER;
import package::shared::view::{View, count_of, position, unravel};

struct Params {
    // The number of rows of a, and the dims of a row.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The first row of y that is bound, the number of bound rows, and the offset and stride of
    // `ids`.
    rows: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;

// 1 to cast floats, 0 to keep the bits.
override CAST: u32 = 0u;
// The dtype of y.
override TO: u32 = 0u;

fn bits_at(i: u32) -> u32 {
    if CAST == 0u {
        return bits_of(a[i >> SHIFT], i);
    }
    let value = decode(a[word_of(i, A_DTYPE)], i, A_DTYPE);
    if TO == TYPE_F32 {
        return bitcast<u32>(value);
    }
    if TO <= TYPE_BF16 {
        return encode(value, TO);
    }
    return encode_float(float_number(bitcast<u32>(value), TYPE_F32), TO);
}

@compute @workgroup_size(WORKGROUP)
fn set_rows(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = (flat_workgroup(workgroup, workgroups) * WORKGROUP + lane) * PER;
    let half = number & SPLIT;
    let first = number >> SPLIT;
    let dims = params.dims;
    if first >= count_of(dims) {
        return;
    }
    let at = unravel(first, dims);
    let id = ids[params.rows.z + at.x * params.rows.w];
    let row = u32(id) - params.rows.x;
    if id < 0 || row >= params.rows.y {
        return;
    }
    let source = (position(params.a, at) << SPLIT) | half;
    let place = (position(params.out, vec4<u32>(row, at.yzw)) << SPLIT) | half;
    let step = params.a.strides.w;
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
