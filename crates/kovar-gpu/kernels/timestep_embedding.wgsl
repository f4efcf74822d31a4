// y[.., i] = sin(t w[i]) and y[.., h + i] = cos(t w[i]), or the other way round.

import package::shared::a::{a, a_at};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::math::{is_finite, or_bits, sine_of_turn, NAN_BITS};
import package::shared::out::put;
import package::shared::view::{View, count_of, position, unravel};
import package::shared::wide::{add_wide, funnel, mul_wide};

struct Params {
    // The dims of t.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The first frequency of the dispatch, the number of its frequencies, the number of all
    // frequencies, and the stride of columns of y.
    columns: vec4<u32>,
    // 1 if the dispatch writes the last column of an odd number.
    rest: vec4<u32>,
    // In turns: a mantissa of 53 bits in two words, the exponent, and 1 if negative or 2 if not
    // finite.
    frequencies: array<vec4<u32>, 256>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for t of I32.
override INTEGER: u32 = 0u;
// 1 for cosines first.
override FLIP: u32 = 0u;

fn word_or_zero(number: vec3<u32>, i: i32) -> u32 {
    switch i {
        case 0 { return number.x; }
        case 1 { return number.y; }
        case 2 { return number.z; }
        default { return 0u; }
    }
}

// 32 bits of a number from bit `at` on. Bits beyond its ends are 0.
fn bits_from(number: vec3<u32>, at: i32) -> u32 {
    let word = at >> 5u;
    let shift = u32(at & 31);
    let high = word_or_zero(number, word + 1);
    let low = word_or_zero(number, word);
    return select(funnel(high, low, 32u - shift), low, shift == 0u);
}

// The exact fraction of a turn of `magnitude 2^exponent` times a frequency.
fn turn_fraction(magnitude: u32, exponent: i32, frequency: vec4<u32>) -> vec2<u32> {
    let low = mul_wide(magnitude, frequency.x);
    let high = add_wide(mul_wide(magnitude, frequency.y), vec2<u32>(low.y, 0u));
    let product = vec3<u32>(low.x, high.x, high.y);
    let point = clamp(-(exponent + bitcast<i32>(frequency.z)), -64, 256);
    return vec2<u32>(bits_from(product, point - 32), bits_from(product, point - 64));
}

@compute @workgroup_size(WORKGROUP)
fn timestep_embedding(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    let row = number / params.columns.y;
    let dims = params.dims;
    if row >= count_of(dims) {
        return;
    }
    let i = number - row * params.columns.y;
    let at = unravel(row, dims);
    let source = position(params.a, at);
    let start = position(params.out, at);
    if i == 0u && params.rest.x == 1u {
        put(start + 2u * params.columns.z * params.columns.w, 0.0);
    }
    let frequency = params.frequencies[i];
    var magnitude = 0u;
    var exponent = 0;
    var negative = frequency.w == 1u;
    var finite = frequency.w != 2u;
    if INTEGER == 1u {
        let t = bitcast<i32>(a[source]);
        negative = negative != (t < 0);
        magnitude = select(u32(t), 0u - u32(t), t < 0);
    } else {
        let t = a_at(source);
        let bits = bitcast<u32>(t);
        let biased = (bits >> 23u) & 0xffu;
        magnitude = (bits & 0x7fffffu) | select(0u, 0x800000u, biased != 0u);
        exponent = i32(max(biased, 1u)) - 150;
        negative = negative != (bits >= 0x80000000u);
        finite = finite && is_finite(t);
    }
    var turn = turn_fraction(magnitude, exponent, frequency);
    if negative {
        turn = vec2<u32>(~turn.x + select(0u, 1u, turn.y == 0u), 0u - turn.y);
    }
    let column = params.columns.x + i;
    let first = sine_of_turn(turn, FLIP);
    let second = sine_of_turn(turn, 1u - FLIP);
    put(start + column * params.columns.w, or_bits(first, NAN_BITS, !finite));
    put(start + (params.columns.z + column) * params.columns.w, or_bits(second, NAN_BITS, !finite));
}
