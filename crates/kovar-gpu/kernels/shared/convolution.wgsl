// Convolutions over two dims, and their adjoints, as products of pixels and output channels whose
// terms are (input channel, tap, tap). Along an axis, position `i` of a result reads the image at
// `i * advance + base + t * hop` for each tap `t`.
//
// The pixels of an adjoint come in phases: those whose position has the same remainder by the stride
// have the same taps, those of every `skip`-th row of the kernel from `first` on.

import package::shared::c::c_at;
import package::shared::element::{decode, word_of};
import package::shared::out::{put, put_pair};
import package::shared::view::View;

struct Params {
    // Strides along batch, channel, height and width.
    x: View,
    // Along output channel, input channel, height and width.
    weight: View,
    c: View,
    out: View,
    // Batch, input channels of a group, height and width of the image.
    image: vec4<u32>,
    // Groups, output channels of a group, height and width.
    result: vec4<u32>,
    // The kernel's height and width, the weight's stride from a group to the next.
    kernel: vec4<u32>,
    // Phases, stride, dilation and padding, vertical and horizontal.
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
    // Of an adjoint: `skip` and the rows of the image that it makes, vertical and horizontal.
    skips: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> weight: array<u32>;

override A_DTYPE: u32 = 0u;
override B_DTYPE: u32 = 0u;
override ADDEND: u32 = 0u;
override ADJOINT: u32 = 0u;

// The taps of a phase along an axis.
struct Taps {
    count: u32,
    // The first in the kernel, and from one to the next.
    first: u32,
    skip: u32,
    advance: i32,
    base: i32,
    hop: i32,
}

fn taps_of(axis: vec4<u32>, skips: vec2<u32>, kernel: u32, phase: u32) -> Taps {
    if ADJOINT == 0u {
        return Taps(kernel, 0u, 1u, i32(axis.y), -i32(axis.w), i32(axis.z));
    }
    for (var first = 0u; first < min(skips.x, kernel); first++) {
        let reach = i32(phase + axis.w) - i32(first * axis.z);
        if reach % i32(axis.y) == 0 {
            let count = (kernel - first + skips.x - 1u) / skips.x;
            return Taps(count, first, skips.x, 1, reach / i32(axis.y), -i32(skips.y));
        }
    }
    return Taps(0u, 0u, 1u, 1, 0, 0);
}

// What a workgroup computes: a part of a group and a phase.
struct Part {
    group: u32,
    // The first row and column of the result, and the rows and columns that the phase has.
    row: u32,
    column: u32,
    rows: u32,
    columns: u32,
    vertical: Taps,
    horizontal: Taps,
}

fn parts() -> u32 {
    return params.result.x * params.vertical.x * params.horizontal.x;
}

fn part_of(index: u32) -> Part {
    let column = index % params.horizontal.x;
    let row = index / params.horizontal.x % params.vertical.x;
    return Part(
        index / params.horizontal.x / params.vertical.x,
        row,
        column,
        (params.result.z - row + params.vertical.x - 1u) / params.vertical.x,
        (params.result.w - column + params.horizontal.x - 1u) / params.horizontal.x,
        taps_of(params.vertical, params.skips.xy, params.kernel.x, row),
        taps_of(params.horizontal, params.skips.zw, params.kernel.y, column),
    );
}

// Pixels of a part; no part has more than the first.
fn pixels_of(part: Part) -> u32 {
    return params.image.x * part.rows * part.columns;
}

fn terms_of(part: Part) -> u32 {
    return params.image.y * part.vertical.count * part.horizontal.count;
}

// A pixel of the result as the image is seen from it.
struct Pixel {
    any: bool,
    // The position of its batch and group in `x`.
    base: u32,
    row: i32,
    column: i32,
}

fn pixel_of(part: Part, pixel: u32) -> Pixel {
    let column = pixel % part.columns;
    let row = pixel / part.columns % part.rows;
    let batch = pixel / part.columns / part.rows;
    let group = part.group * params.image.y;
    return Pixel(
        batch < params.image.x,
        params.x.offset + batch * params.x.strides.x + group * params.x.strides.y,
        i32(row) * part.vertical.advance + part.vertical.base,
        i32(column) * part.horizontal.advance + part.horizontal.base,
    );
}

// A term: an input channel and a tap.
struct Term {
    channel: u32,
    vertical: u32,
    horizontal: u32,
}

fn term_of(part: Part, term: u32) -> Term {
    let horizontal = term % part.horizontal.count;
    let rest = term / part.horizontal.count;
    return Term(rest / part.vertical.count, rest % part.vertical.count, horizontal);
}

// The image at a term of a pixel, 0 outside.
fn image_at(part: Part, pixel: Pixel, term: Term) -> f32 {
    let row = pixel.row + i32(term.vertical) * part.vertical.hop;
    let column = pixel.column + i32(term.horizontal) * part.horizontal.hop;
    let inside = row >= 0 && u32(row) < params.image.z && column >= 0
        && u32(column) < params.image.w;
    if !pixel.any || !inside {
        return 0.0;
    }
    let steps = params.x.strides.yzw * vec3<u32>(term.channel, u32(row), u32(column));
    let i = pixel.base + steps.x + steps.y + steps.z;
    return decode(x[word_of(i, A_DTYPE)], i, A_DTYPE);
}

// The weight of a term for an output channel of the group, which is there.
fn weight_at(part: Part, channel: u32, term: Term) -> f32 {
    let taps = vec2<u32>(
        part.vertical.first + term.vertical * part.vertical.skip,
        part.horizontal.first + term.horizontal * part.horizontal.skip,
    );
    let steps = params.weight.strides * vec4<u32>(channel, term.channel, taps);
    let i = params.weight.offset + part.group * params.kernel.z
        + steps.x + steps.y + steps.z + steps.w;
    return decode(weight[word_of(i, B_DTYPE)], i, B_DTYPE);
}

// The place of a pixel's result in a window.
fn place_of(view: View, part: Part, pixel: u32, channel: u32) -> u32 {
    let column = part.column + pixel % part.columns * params.horizontal.x;
    let row = part.row + pixel / part.columns % part.rows * params.vertical.x;
    let batch = pixel / part.columns / part.rows;
    let steps = view.strides
        * vec4<u32>(batch, part.group * params.result.y + channel, row, column);
    return view.offset + steps.x + steps.y + steps.z + steps.w;
}

fn added(part: Part, pixel: u32, channel: u32, sum: f32) -> f32 {
    if ADDEND == 1u {
        return sum + c_at(place_of(params.c, part, pixel, channel));
    }
    return sum;
}

// Writes the results of a pixel and the next, as far as they are there, given their sums.
fn finish_pair(part: Part, pixel: u32, channel: u32, first: f32, second: f32) {
    let pixels = pixels_of(part);
    if pixel >= pixels || channel >= params.result.y {
        return;
    }
    let place = place_of(params.out, part, pixel, channel);
    let y = added(part, pixel, channel, first);
    if pixel + 1u >= pixels {
        put(place, y);
        return;
    }
    let next_place = place_of(params.out, part, pixel + 1u, channel);
    let next_y = added(part, pixel + 1u, channel, second);
    if next_place == place + 1u && place % 2u == 0u {
        put_pair(place, y, next_y);
    } else {
        put(place, y);
        put(next_place, next_y);
    }
}
