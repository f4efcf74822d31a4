// y[i] = start + i step, computed exactly in integers of 96 bits and then rounded if y has floats.

import package::shared::bits::{SPLIT, put_bits};
import package::shared::grid::{WORKGROUP, flat_workgroup};
import package::shared::number::{encode_float, number_of, Number, TYPE_F32};
import package::shared::wide::{add_wide, funnel, mul_wide};

struct Params {
    // The first element and the difference of neighbours, in two's complement, the lowest word
    // first.
    start: vec4<u32>,
    step: vec4<u32>,
    // The elements, the offset and the stride of y, and the exponent of the unit of the integers.
    shape: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for F32, 0 for integers.
override FLOAT: u32 = 0u;

// a + i b
fn progressed(a: vec4<u32>, b: vec4<u32>, i: u32) -> vec3<u32> {
    let low = add_wide(mul_wide(b.x, i), vec2<u32>(a.x, 0u));
    let middle = add_wide(add_wide(mul_wide(b.y, i), vec2<u32>(a.y, 0u)), vec2<u32>(low.y, 0u));
    return vec3<u32>(low.x, middle.x, b.z * i + a.z + middle.y);
}

// `number 2^exponent` with a mantissa of 64 bits. Its last bit is set if lower bits are dropped.
fn as_number(number: vec3<u32>, exponent: i32) -> Number {
    let negative = number.z >= 0x80000000u;
    var magnitude = number;
    if negative {
        magnitude = ~number;
        magnitude.x += 1u;
        magnitude.y += select(0u, 1u, magnitude.x == 0u);
        magnitude.z += select(0u, 1u, magnitude.x == 0u && magnitude.y == 0u);
    }
    if magnitude.z == 0u {
        return number_of(negative, magnitude.y, magnitude.x, exponent);
    }
    let zeros = countLeadingZeros(magnitude.z);
    let high = funnel(magnitude.z, magnitude.y, zeros);
    let low = funnel(magnitude.y, magnitude.x, zeros);
    let sticky = select(0u, 1u, (magnitude.x << zeros) != 0u);
    return number_of(negative, high, low | sticky, exponent + 32 - i32(zeros));
}

@compute @workgroup_size(WORKGROUP)
fn arange(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = flat_workgroup(workgroup, workgroups) * WORKGROUP + lane;
    let i = number >> SPLIT;
    let half = number & SPLIT;
    if i >= params.shape.x {
        return;
    }
    let value = progressed(params.start, params.step, i);
    var words = value.xy;
    if FLOAT == 1u {
        words.x = encode_float(as_number(value, bitcast<i32>(params.shape.w)), TYPE_F32);
    }
    let place = ((params.shape.y + i * params.shape.z) << SPLIT) | half;
    put_bits(place, select(words.x, words.y, half == 1u));
}
