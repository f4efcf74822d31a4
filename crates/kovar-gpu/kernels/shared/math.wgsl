// Functions of f32 to a few units in the last place: WGSL's own functions may be off by 2^-11.
// Infinities and NaN are recognised by their bits, because compilers may assume that arithmetic has
// none.

import package::shared::wide::{funnel, mul_wide};

const INFINITY_BITS = 0x7f800000u;
const NAN_BITS = 0x7fc00000u;

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > INFINITY_BITS;
}

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) < INFINITY_BITS;
}

// The number with these bits if `condition` holds, else `y`.
fn or_bits(y: f32, bits: u32, condition: bool) -> f32 {
    return bitcast<f32>(select(bitcast<u32>(y), bits, condition));
}

// `x` if it is NaN, else `y`.
fn keep_nan(y: f32, x: f32) -> f32 {
    return or_bits(y, bitcast<u32>(x), is_nan(x));
}

// `2^n` for `n` in -126..127.
fn power_of_two(n: i32) -> f32 {
    return bitcast<f32>(u32(n + 127) << 23u);
}

// `e^x` as `2^n e^r` with `|r| <= ln(2) / 2`. The remainder `r` is computed in integers, in units
// of 2^-24, because compilers may reorder sums of floats and so cancel `r`. Half such a unit is
// less than half a unit in the last place of the result.
fn exponential(x: f32) -> f32 {
    let bounded = clamp(x, -104.0, 89.0);
    let n = i32(round(bounded * 1.44269504));
    // ln(2) is 11629079 and 63442 / 65536 units.
    let units = i32(bounded * 16777216.0) - n * 11629079 - ((n * 63442 + 32768) >> 16u);
    let r = f32(units) * 5.96046448e-8;
    var sum = 1.9875691e-4;
    sum = fma(sum, r, 1.3981999e-3);
    sum = fma(sum, r, 8.3334519e-3);
    sum = fma(sum, r, 4.1665796e-2);
    sum = fma(sum, r, 1.6666665e-1);
    sum = fma(sum, r, 0.5);
    let y = fma(sum, r * r, r) + 1.0;
    // In two steps, because the power may be out of range where the product is not.
    let half = n >> 1u;
    let scaled = y * power_of_two(half) * power_of_two(n - half);
    return or_bits(scaled, INFINITY_BITS, x > 88.7228394);
}

// `2 atanh(s)` for `|s| <= 1/3`, by its series.
fn twice_atanh(s: f32) -> f32 {
    let square = s * s;
    var sum = 0.117647059;
    sum = fma(sum, square, 0.133333333);
    sum = fma(sum, square, 0.153846154);
    sum = fma(sum, square, 0.181818182);
    sum = fma(sum, square, 0.222222222);
    sum = fma(sum, square, 0.285714286);
    sum = fma(sum, square, 0.4);
    sum = fma(sum, square, 0.666666667);
    return fma(sum * square, s, 2.0 * s);
}

// `ln(x)` with `x = 2^n m` and `m` between the roots of 1/2 and of 2.
fn logarithm(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // Denormals are normalised, with exponents below the range of normal numbers.
    let shift = select(0u, countLeadingZeros(bits & 0x7fffffu) - 8u, bits < 0x800000u && bits != 0u);
    let normal = select(bits, (bits << shift) & 0x7fffffu, shift != 0u);
    let exponent = select(i32(bits >> 23u), 1 - i32(shift), shift != 0u);
    let mantissa = normal & 0x7fffffu;
    let large = mantissa > 0x3504f3u;
    let m = bitcast<f32>(mantissa | select(0x3f800000u, 0x3f000000u, large));
    let n = f32(exponent - 127 + select(0, 1, large));
    let series = twice_atanh((m - 1.0) / (m + 1.0));
    let y = fma(n, 0.693359375, fma(n, -2.12194440e-4, series));
    let zero = (bits & 0x7fffffffu) == 0u;
    let limit = or_bits(y, 0xff800000u, zero);
    let negative = or_bits(limit, NAN_BITS, !zero && bits >= 0x80000000u);
    return or_bits(negative, INFINITY_BITS, bits == INFINITY_BITS);
}

// `ln(1 + u)` for `u` in 0..1.
fn logarithm_of_one_and(u: f32) -> f32 {
    return twice_atanh(u / (2.0 + u));
}

// Word `i` of a word of zeros and the binary fraction of 1 / (2 pi).
fn inverse_two_pi(i: u32) -> u32 {
    switch i {
        case 1u { return 0x28be60dbu; }
        case 2u { return 0x9391054au; }
        case 3u { return 0x7f09d5f4u; }
        case 4u { return 0x7d4d3770u; }
        case 5u { return 0x36d8a566u; }
        case 6u { return 0x4f10e410u; }
        case 7u { return 0x7f9458eau; }
        default { return 0u; }
    }
}

// 32 bits of these words from bit `bit` on.
fn inverse_two_pi_from(bit: u32) -> u32 {
    let word = bit >> 5u;
    return funnel(inverse_two_pi(word), inverse_two_pi(word + 1u), bit & 31u);
}

// The fraction of a turn of an angle of `x` radians, in units of 2^-32 and of 2^-64 (Payne and
// Hanek 1983): the integer mantissa times those 96 bits of 1 / (2 pi) that do not give whole turns.
// `x` is finite and at least 1/2.
fn turn_of(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    // x = mantissa 2^(exponent - 150), and the table begins 32 bits before the binary point.
    let start = ((bits >> 23u) & 0xffu) - 118u;
    let low = mul_wide(mantissa, inverse_two_pi_from(start + 64u));
    let middle = mul_wide(mantissa, inverse_two_pi_from(start + 32u));
    let second = middle.x + low.y;
    let carry = middle.y + select(0u, 1u, second < low.y);
    return vec2<u32>(mantissa * inverse_two_pi_from(start) + carry, second);
}

// The sine of a fraction of a turn, in units of 2^-32 and of 2^-64, plus `quarters` of a turn.
fn sine_of_turn(turn: vec2<u32>, quarters: u32) -> f32 {
    let nearest = (turn.x + 0x20000000u) >> 30u;
    let rest = turn.x - (nearest << 30u);
    let negative = rest >= 0x80000000u;
    let low = select(turn.y, 0u - turn.y, negative);
    let high = select(rest, ~rest + select(0u, 1u, turn.y == 0u), negative);
    let zeros = select(countLeadingZeros(high), 32u + countLeadingZeros(low), high == 0u);
    let top = select(funnel(high, low, zeros & 31u), low << (zeros & 31u), high == 0u);
    // 2 pi top 2^-(32 + zeros), which is 0 for a whole number of quarters.
    let part = f32(top) * power_of_two(-32 - i32(min(zeros, 64u))) * 6.28318531;
    let angle = select(part, -part, negative);
    return sine_or_cosine(angle, nearest + quarters);
}

// The sine of an angle of at most pi / 4 plus `quarters` of a turn.
fn sine_or_cosine(angle: f32, quarters: u32) -> f32 {
    let square = angle * angle;
    var sine = fma(-1.95152959e-4, square, 8.33216087e-3);
    sine = fma(sine, square, -0.166666546);
    sine = fma(sine * square, angle, angle);
    var cosine = fma(2.44331571e-5, square, -1.38873163e-3);
    cosine = fma(cosine, square, 4.16666457e-2);
    cosine = fma(cosine * square, square, fma(-0.5, square, 1.0));
    let y = select(sine, cosine, (quarters & 1u) == 1u);
    return select(y, -y, (quarters & 2u) == 2u);
}

// `sin(x + quarters pi / 2)`.
fn sine(x: f32, quarters: u32) -> f32 {
    let magnitude = abs(x);
    if magnitude < 0.78 {
        return sine_or_cosine(x, quarters);
    }
    if !is_finite(x) {
        return or_bits(x, NAN_BITS, true);
    }
    let turn = turn_of(magnitude);
    // sin(-x) is the sine of the rest of the turn.
    let low = 0u - turn.y;
    let other = vec2<u32>(~turn.x + select(0u, 1u, turn.y == 0u), low);
    return sine_of_turn(select(turn, other, x < 0.0), quarters);
}

// `1 / (1 + e^-x)`
fn sigmoid(x: f32) -> f32 {
    let e = exponential(-abs(x));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}

// `tanh(x)`: near 0 from a Chebyshev fit of `(tanh(x) / x - 1) / x^2`.
fn hyperbolic_tangent(x: f32) -> f32 {
    let magnitude = abs(x);
    let far = 1.0 - 2.0 / (exponential(2.0 * min(magnitude, 20.0)) + 1.0);
    let square = x * x;
    var sum = fma(2.2927448e-3, square, -8.343945e-3);
    sum = fma(sum, square, 2.1768918e-2);
    sum = fma(sum, square, -5.395926e-2);
    sum = fma(sum, square, 0.13333304);
    sum = fma(sum, square, -0.33333334);
    let near = fma(sum * square, x, x);
    return select(select(far, -far, x < 0.0), near, magnitude < 0.625);
}

// `x / (1 + e^-x)`
fn silu(x: f32) -> f32 {
    return or_bits(x * sigmoid(x), NAN_BITS, bitcast<u32>(x) == 0xff800000u);
}

// `x Phi(x)` with `Phi(-|x|) = e^(-x^2 / 2) t P(t)`, `t = 1 / (1 + |x| / 4)` and a Chebyshev fit
// `P`, whose error is below 3e-9 where the exponential is not 0.
fn gelu(x: f32) -> f32 {
    let magnitude = min(abs(x), 20.0);
    let t = 1.0 / fma(magnitude, 0.25, 1.0);
    var fit = fma(0.015383603, t, -0.056345463);
    fit = fma(fit, t, 0.036615256);
    fit = fma(fit, t, 0.048318084);
    fit = fma(fit, t, -0.00367796);
    fit = fma(fit, t, 0.09537557);
    fit = fma(fit, t, 0.069011636);
    fit = fma(fit, t, 0.09615087);
    fit = fma(fit, t, 0.09941662);
    fit = fma(fit, t, 0.09975179);
    let tail = exponential(-0.5 * magnitude * magnitude) * t * fit;
    let y = x * select(1.0 - tail, tail, x < 0.0);
    return or_bits(y, NAN_BITS, bitcast<u32>(x) == 0xff800000u);
}

// `x sigmoid(2 u)`, which equals `x / 2 (1 + tanh(u))` with `u = sqrt(2 / pi) (x + 0.044715 x^3)`.
fn gelu_tanh(x: f32) -> f32 {
    let bounded = clamp(x, -20.0, 20.0);
    let slope = fma(bounded * bounded, 0.071354816, 1.5957692);
    let y = x * sigmoid(slope * bounded);
    return or_bits(y, NAN_BITS, bitcast<u32>(x) == 0xff800000u);
}

// `x sigmoid(1.702 x)`
fn gelu_quick(x: f32) -> f32 {
    let y = x * sigmoid(1.702 * clamp(x, -100.0, 100.0));
    return or_bits(y, NAN_BITS, bitcast<u32>(x) == 0xff800000u);
}

// `ln(1 + e^x)`
fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + logarithm_of_one_and(exponential(-abs(x)));
}

// `2^64 x` of a number below 2^64. Subnormal numbers are read by their bits, because devices may
// take them for 0.
fn scaled_up(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    if magnitude < 0x00800000u {
        // In units of 2^-149.
        let units = f32(magnitude) * 2.5849394e-26;
        return bitcast<f32>(bitcast<u32>(units) | (bits & 0x80000000u));
    }
    return x * 18446744073709551616.0;
}

// `x / y`
fn quotient(x: f32, y: f32) -> f32 {
    let divisor = bitcast<u32>(y) & 0x7fffffffu;
    if divisor >= 0x00800000u {
        return x / y;
    }
    // 2^60 or more, infinity or NaN divided by less than 2^-126.
    if (bitcast<u32>(x) & 0x7fffffffu) >= 0x5d800000u {
        return x / scaled_up(y) * 18446744073709551616.0;
    }
    return scaled_up(x) / scaled_up(y);
}

// The square root of `|x|`.
fn square_root(x: f32) -> f32 {
    let magnitude = bitcast<u32>(x) & 0x7fffffffu;
    if magnitude < 0x00800000u {
        return sqrt(abs(scaled_up(x))) * 2.3283064365386963e-10;
    }
    return sqrt(abs(x));
}
