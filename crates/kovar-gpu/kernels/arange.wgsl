// y[i] = start + i step, exactly in integers of 96 bits, then rounded if y is of floats.

import package::shared::bits::put_bits;
import package::shared::grid::flat_workgroup;
import package::shared::wide::{add_wide, mul_wide};

struct Params {
    // The first element and the difference of neighbours, of two's complement, the lowest word first.
    start: vec4<u32>,
    step: vec4<u32>,
    // Elements, the offset and the stride of y, and the exponent of the integers' unit.
    shape: vec4<u32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// 1 for F32, 0 for integers.
override FLOAT: u32 = 0u;
// 1 for elements of two words, which are written one by one.
override SPLIT: u32 = 0u;
override WORKGROUP: u32 = 256u;

// a + i b
fn progressed(a: vec4<u32>, b: vec4<u32>, i: u32) -> vec3<u32> {
    let low = add_wide(mul_wide(b.x, i), vec2<u32>(a.x, 0u));
    let middle = add_wide(add_wide(mul_wide(b.y, i), vec2<u32>(a.y, 0u)), vec2<u32>(low.y, 0u));
    return vec3<u32>(low.x, middle.x, b.z * i + a.z + middle.y);
}

// The bits of the F32 next to `number 2^exponent`, of the even one of two.
fn rounded(number: vec3<u32>, exponent: i32) -> u32 {
    let negative = number.z >= 0x80000000u;
    var magnitude = number;
    if negative {
        magnitude = ~number;
        magnitude.x += 1u;
        magnitude.y += select(0u, 1u, magnitude.x == 0u);
        magnitude.z += select(0u, 1u, magnitude.x == 0u && magnitude.y == 0u);
    }
    if all(magnitude == vec3<u32>(0u)) {
        return 0u;
    }
    var power = exponent + 95;
    // The highest bit to the top.
    if magnitude.z == 0u {
        magnitude = vec3<u32>(0u, magnitude.xy);
        power -= 32;
    }
    if magnitude.z == 0u {
        magnitude = vec3<u32>(0u, magnitude.xy);
        power -= 32;
    }
    let zeros = countLeadingZeros(magnitude.z);
    power -= i32(zeros);
    let top = (magnitude.z << zeros) | select(magnitude.y >> (32u - zeros), 0u, zeros == 0u);
    let sticky = (magnitude.y << zeros) != 0u || magnitude.x != 0u;
    // Denormals keep fewer bits.
    let dropped = 8 + max(-126 - power, 0);
    let sign = select(0u, 0x80000000u, negative);
    if dropped > 31 {
        return sign;
    }
    let rest = top & ((1u << u32(dropped)) - 1u);
    let half = 1u << (u32(dropped) - 1u);
    let kept = top >> u32(dropped);
    let up = rest > half || (rest == half && (sticky || (kept & 1u) == 1u));
    return sign | ((u32(max(power, -126) + 126) << 23u) + kept + select(0u, 1u, up));
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
    var bits = select(value.x, value.y, half == 1u);
    if FLOAT == 1u {
        bits = rounded(value, bitcast<i32>(params.shape.w));
    }
    put_bits(((params.shape.y + i * params.shape.z) << SPLIT) | half, bits);
}
