// y = an image resized to another size, by the nearest pixels or by linear interpolation along each
// axis.

import package::shared::a::a_at;
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::out::{PER, put, put_pair};
import package::shared::view::{View, count_of, position, unravel};
import package::shared::wide::{add_wide, div_wide, mul_wide};

struct Params {
    dims: vec4<u32>,
    out: View,
    a: View,
    // Pixel `i` is exactly at position `max(i x + y - z, 0) / w` of a.
    rows: vec4<u32>,
    columns: vec4<u32>,
    // The first bound rows of y and of a, and the last row and column of a.
    bounds: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for linear, 0 for nearest.
override LINEAR: u32 = 0u;
// 1 if products have more than 32 bits.
override WIDE: u32 = 0u;

// The position of pixel `i`: its whole number of pixels, and the fraction in units of `1 / map.w`.
fn place_of(i: u32, map: vec4<u32>) -> vec2<u32> {
    if WIDE == 1u {
        let sum = add_wide(mul_wide(i, map.x), vec2<u32>(map.y, 0u));
        if sum.y == 0u && sum.x < map.z {
            return vec2<u32>(0u);
        }
        let number = vec2<u32>(sum.x - map.z, sum.y - select(0u, 1u, sum.x < map.z));
        return div_wide(number, map.w);
    }
    let sum = i * map.x + map.y;
    let number = sum - min(sum, map.z);
    let whole = number / map.w;
    return vec2<u32>(whole, number - whole * map.w);
}

fn pixel(image: u32, row: u32, column: u32) -> f32 {
    return a_at(image + (row - params.bounds.y) * params.a.strides.z + column * params.a.strides.w);
}

fn upscaled(at: vec4<u32>) -> f32 {
    let image = params.a.offset + at.x * params.a.strides.x + at.y * params.a.strides.y;
    let row = place_of(at.z + params.bounds.x, params.rows);
    let column = place_of(at.w, params.columns);
    let top = min(row.x, params.bounds.z);
    let left = min(column.x, params.bounds.w);
    if LINEAR == 0u {
        return pixel(image, top, left);
    }
    let bottom = min(top + 1u, params.bounds.z);
    let right = min(left + 1u, params.bounds.w);
    let down = f32(row.y) / f32(params.rows.w);
    let up = f32(params.rows.w - row.y) / f32(params.rows.w);
    let far = f32(column.y) / f32(params.columns.w);
    let near = f32(params.columns.w - column.y) / f32(params.columns.w);
    let upper = pixel(image, top, left) * near + pixel(image, top, right) * far;
    let lower = pixel(image, bottom, left) * near + pixel(image, bottom, right) * far;
    return upper * up + lower * down;
}

@compute @workgroup_size(WORKGROUP)
fn upscale(
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
    let value = upscaled(at);
    if PER == 1u {
        put(place, value);
    } else {
        put_pair(place, value, upscaled(at + vec4<u32>(0u, 0u, 0u, 1u)));
    }
}
