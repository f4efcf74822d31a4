// Convolutions over two dims, and their adjoints, as products of pixels and output channels. K runs
// over (input channel, tap, tap). Along an axis, position `i` of a result reads the image at
// `i * advance + base + t * hop` for each tap `t`.
//
// The pixels of an adjoint have phases: pixels whose positions have the same remainder by the
// stride have the same taps, every `skip`-th one of the kernel from `first` on.

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
    // The kernel's height and width, and the weight's stride between groups.
    kernel: vec4<u32>,
    // Phases, stride, dilation and padding, vertical and horizontal.
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
    // For an adjoint: `skip`, and the rows of the image that a skip stands for, vertical and
    // horizontal.
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
    // The first one in the kernel, and the distance between them.
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

// A group of the result in one phase.
struct Phase {
    group: u32,
    // Its first row and column of the result, and the number of its rows and columns.
    row: u32,
    column: u32,
    rows: u32,
    columns: u32,
    vertical: Taps,
    horizontal: Taps,
}

fn phase_of(index: u32) -> Phase {
    let column = index % params.horizontal.x;
    let row = index / params.horizontal.x % params.vertical.x;
    return Phase(
        index / params.horizontal.x / params.vertical.x,
        row,
        column,
        (params.result.z - row + params.vertical.x - 1u) / params.vertical.x,
        (params.result.w - column + params.horizontal.x - 1u) / params.horizontal.x,
        taps_of(params.vertical, params.skips.xy, params.kernel.x, row),
        taps_of(params.horizontal, params.skips.zw, params.kernel.y, column),
    );
}

// The first pixel and output channel of a tile.
struct Corner {
    // Whether there is such a tile.
    inside: bool,
    phase: Phase,
    pixel: u32,
    channel: u32,
}

// The corner of tile `i` of those with this many pixels and output channels.
fn corner_of(i: u32, pixels: u32, channels: u32) -> Corner {
    // No phase has more pixels than the first.
    let rows = (pixels_of(phase_of(0u)) + pixels - 1u) / pixels;
    let columns = (params.result.y + channels - 1u) / channels;
    let phases = params.result.x * params.vertical.x * params.horizontal.x;
    return Corner(
        i < rows * columns * phases,
        phase_of(i / rows / columns),
        i % rows * pixels,
        i / rows % columns * channels,
    );
}

// The pixels of a phase.
fn pixels_of(phase: Phase) -> u32 {
    return params.image.x * phase.rows * phase.columns;
}

// The elements along K.
fn depth_of(phase: Phase) -> u32 {
    return params.image.y * phase.vertical.count * phase.horizontal.count;
}

// A pixel of the result, in coordinates of the image.
struct Pixel {
    any: bool,
    // The position of its batch and group in `x`.
    base: u32,
    row: i32,
    column: i32,
}

fn pixel_of(phase: Phase, pixel: u32) -> Pixel {
    let column = pixel % phase.columns;
    let row = pixel / phase.columns % phase.rows;
    let batch = pixel / phase.columns / phase.rows;
    let group = phase.group * params.image.y;
    return Pixel(
        batch < params.image.x,
        params.x.offset + batch * params.x.strides.x + group * params.x.strides.y,
        i32(row) * phase.vertical.advance + phase.vertical.base,
        i32(column) * phase.horizontal.advance + phase.horizontal.base,
    );
}

// An element along K: an input channel and a tap.
struct Tap {
    channel: u32,
    vertical: u32,
    horizontal: u32,
}

fn tap_of(phase: Phase, k: u32) -> Tap {
    let horizontal = k % phase.horizontal.count;
    let rest = k / phase.horizontal.count;
    return Tap(rest / phase.vertical.count, rest % phase.vertical.count, horizontal);
}

// The image at a tap of a pixel, 0 outside.
fn image_at(phase: Phase, pixel: Pixel, tap: Tap) -> f32 {
    let row = pixel.row + i32(tap.vertical) * phase.vertical.hop;
    let column = pixel.column + i32(tap.horizontal) * phase.horizontal.hop;
    let inside = row >= 0 && u32(row) < params.image.z && column >= 0
        && u32(column) < params.image.w;
    if !pixel.any || !inside {
        return 0.0;
    }
    let steps = params.x.strides.yzw * vec3<u32>(tap.channel, u32(row), u32(column));
    let i = pixel.base + steps.x + steps.y + steps.z;
    return decode(x[word_of(i, A_DTYPE)], i, A_DTYPE);
}

// The weight of a tap for an output channel of the group, which must exist.
fn weight_at(phase: Phase, channel: u32, tap: Tap) -> f32 {
    let taps = vec2<u32>(
        phase.vertical.first + tap.vertical * phase.vertical.skip,
        phase.horizontal.first + tap.horizontal * phase.horizontal.skip,
    );
    let steps = params.weight.strides * vec4<u32>(channel, tap.channel, taps);
    let i = params.weight.offset + phase.group * params.kernel.z
        + steps.x + steps.y + steps.z + steps.w;
    return decode(weight[word_of(i, B_DTYPE)], i, B_DTYPE);
}

// The position of a pixel's result in a view.
fn place_of(view: View, phase: Phase, pixel: u32, channel: u32) -> u32 {
    let column = phase.column + pixel % phase.columns * params.horizontal.x;
    let row = phase.row + pixel / phase.columns % phase.rows * params.vertical.x;
    let batch = pixel / phase.columns / phase.rows;
    let steps = view.strides
        * vec4<u32>(batch, phase.group * params.result.y + channel, row, column);
    return view.offset + steps.x + steps.y + steps.z + steps.w;
}

fn added(phase: Phase, pixel: u32, channel: u32, sum: f32) -> f32 {
    if ADDEND == 1u {
        return sum + c_at(place_of(params.c, phase, pixel, channel));
    }
    return sum;
}

// Writes the results of a pixel and the next one, given their sums, unless they lie outside.
fn finish_pair(phase: Phase, pixel: u32, channel: u32, first: f32, second: f32) {
    let pixels = pixels_of(phase);
    if pixel >= pixels || channel >= params.result.y {
        return;
    }
    let place = place_of(params.out, phase, pixel, channel);
    let y = added(phase, pixel, channel, first);
    if pixel + 1u >= pixels {
        put(place, y);
        return;
    }
    let next_place = place_of(params.out, phase, pixel + 1u, channel);
    let next_y = added(phase, pixel + 1u, channel, second);
    if next_place == place + 1u && place % 2u == 0u {
        put_pair(place, y, next_y);
    } else {
        put(place, y);
        put(next_place, next_y);
    }
}
