// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct View {
    metal::uint4 strides;
    uint offset;
    char _pad2[12];
};
struct Params {
    metal::uint4 dims;
    View out;
    View a;
    metal::float4 extra;
};
typedef uint type_8[1];
constant uint NEG = 0u;
constant uint ABS = 1u;
constant uint SQR = 2u;
constant uint SQRT = 3u;
constant uint EXP = 4u;
constant uint LOG = 5u;
constant uint SIN = 6u;
constant uint COS = 7u;
constant uint TANH = 8u;
constant uint SIGMOID = 9u;
constant uint SILU = 10u;
constant uint GELU = 11u;
constant uint GELU_TANH = 12u;
constant uint GELU_QUICK = 13u;
constant uint RELU = 14u;
constant uint RELU_SQR = 15u;
constant uint LEAKY_RELU = 16u;
constant uint SOFTPLUS = 17u;
constant uint CLAMP = 18u;
constant uint SCALE = 19u;
constant uint NAN_BITS = 2143289344u;
constant uint INFINITY_BITS = 2139095040u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint KIND = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;
constant uint A_DTYPE = 0u;

float or_bits(
    float y,
    uint bits,
    bool condition
) {
    return as_type<float>(condition ? bits : as_type<uint>(y));
}

float scaled_up(
    float x
) {
    uint bits_1 = as_type<uint>(x);
    uint magnitude = bits_1 & 2147483647u;
    if (magnitude < 8388608u) {
        float units = static_cast<float>(magnitude) * 0.000000000000000000000000025849394;
        return as_type<float>(as_type<uint>(units) | (bits_1 & 2147483648u));
    }
    return x * 18446744000000000000.0;
}

float square_root(
    float x_1
) {
    uint magnitude_1 = as_type<uint>(x_1) & 2147483647u;
    if (magnitude_1 < 8388608u) {
        float _e6 = scaled_up(x_1);
        return metal::sqrt(metal::abs(_e6)) * 0.00000000023283064;
    }
    return metal::sqrt(metal::abs(x_1));
}

float power_of_two(
    int n
) {
    return as_type<float>(static_cast<uint>(as_type<int>(as_type<uint>(n) + as_type<uint>(127))) << 23u);
}

int naga_f2i32(float value) {
    return static_cast<int>(metal::clamp(value, -2147483600.0, 2147483500.0));
}

float exponential(
    float x_2
) {
    float sum = 0.00019875691;
    float bounded = metal::clamp(x_2, -104.0, 89.0);
    int n_1 = naga_f2i32(metal::rint(bounded * 1.442695));
    int units_1 = as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(naga_f2i32(bounded * 16777216.0)) - as_type<uint>(as_type<int>(as_type<uint>(n_1) * as_type<uint>(11629079))))) - as_type<uint>(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(n_1) * as_type<uint>(63442))) + as_type<uint>(32768)) >> 16u));
    float r = static_cast<float>(units_1) * 0.000000059604645;
    float _e26 = sum;
    sum = metal::fma(_e26, r, 0.0013981999);
    float _e29 = sum;
    sum = metal::fma(_e29, r, 0.008333452);
    float _e32 = sum;
    sum = metal::fma(_e32, r, 0.041665796);
    float _e35 = sum;
    sum = metal::fma(_e35, r, 0.16666666);
    float _e38 = sum;
    sum = metal::fma(_e38, r, 0.5);
    float _e41 = sum;
    float y_2 = metal::fma(_e41, r * r, r) + 1.0;
    int half_ = n_1 >> 1u;
    float _e48 = power_of_two(half_);
    float _e51 = power_of_two(as_type<int>(as_type<uint>(n_1) - as_type<uint>(half_)));
    float scaled = (y_2 * _e48) * _e51;
    float _e56 = or_bits(scaled, INFINITY_BITS, x_2 > 88.72284);
    return _e56;
}

float twice_atanh(
    float s
) {
    float sum_1 = 0.11764706;
    float square = s * s;
    float _e4 = sum_1;
    sum_1 = metal::fma(_e4, square, 0.13333334);
    float _e7 = sum_1;
    sum_1 = metal::fma(_e7, square, 0.15384616);
    float _e10 = sum_1;
    sum_1 = metal::fma(_e10, square, 0.18181819);
    float _e13 = sum_1;
    sum_1 = metal::fma(_e13, square, 0.22222222);
    float _e16 = sum_1;
    sum_1 = metal::fma(_e16, square, 0.2857143);
    float _e19 = sum_1;
    sum_1 = metal::fma(_e19, square, 0.4);
    float _e22 = sum_1;
    sum_1 = metal::fma(_e22, square, 0.6666667);
    float _e25 = sum_1;
    return metal::fma(_e25 * square, s, 2.0 * s);
}

float logarithm(
    float x_3
) {
    bool local = {};
    bool local_1 = {};
    uint bits_2 = as_type<uint>(x_3);
    if (bits_2 < 8388608u) {
        local = bits_2 != 0u;
    } else {
        local = false;
    }
    bool _e15 = local;
    uint shift_1 = _e15 ? (metal::clz(bits_2 & 8388607u) - 8u) : 0u;
    uint normal = (shift_1 != 0u) ? ((bits_2 << shift_1) & 8388607u) : bits_2;
    int exponent = (shift_1 != 0u) ? as_type<int>(as_type<uint>(1) - as_type<uint>(static_cast<int>(shift_1))) : static_cast<int>(bits_2 >> 23u);
    uint mantissa = normal & 8388607u;
    bool large = mantissa > 3474675u;
    float m = as_type<float>(mantissa | (large ? 1056964608u : 1065353216u));
    float n_2 = static_cast<float>(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(exponent) - as_type<uint>(127))) + as_type<uint>(large ? 1 : 0)));
    float _e53 = twice_atanh((m - 1.0) / (m + 1.0));
    float y_3 = metal::fma(n_2, 0.6933594, metal::fma(n_2, -0.00021219444, _e53));
    bool zero = (bits_2 & 2147483647u) == 0u;
    float _e63 = or_bits(y_3, 4286578688u, zero);
    if (!(zero)) {
        local_1 = bits_2 >= 2147483648u;
    } else {
        local_1 = false;
    }
    bool _e71 = local_1;
    float _e72 = or_bits(_e63, NAN_BITS, _e71);
    float _e76 = or_bits(_e72, INFINITY_BITS, bits_2 == INFINITY_BITS);
    return _e76;
}

float sine_or_cosine(
    float angle,
    uint quarters
) {
    float sine = {};
    float cosine = {};
    float square_1 = angle * angle;
    sine = metal::fma(-0.00019515296, square_1, 0.008332161);
    float _e7 = sine;
    sine = metal::fma(_e7, square_1, -0.16666655);
    float _e10 = sine;
    sine = metal::fma(_e10 * square_1, angle, angle);
    cosine = metal::fma(0.000024433157, square_1, -0.0013887316);
    float _e17 = cosine;
    cosine = metal::fma(_e17, square_1, 0.041666646);
    float _e20 = cosine;
    cosine = metal::fma(_e20 * square_1, square_1, metal::fma(-0.5, square_1, 1.0));
    float _e26 = sine;
    float _e27 = cosine;
    float y_4 = ((quarters & 1u) == 1u) ? _e27 : _e26;
    return ((quarters & 2u) == 2u) ? -(y_4) : y_4;
}

bool is_finite(
    float x_4
) {
    return (as_type<uint>(x_4) & 2147483647u) < INFINITY_BITS;
}

metal::uint2 mul_wide(
    uint a,
    uint b
) {
    uint low_1 = (a & 65535u) * (b & 65535u);
    uint first_1 = ((a >> 16u) * (b & 65535u)) + (low_1 >> 16u);
    uint second_1 = ((a & 65535u) * (b >> 16u)) + (first_1 & 65535u);
    uint high_1 = (((a >> 16u) * (b >> 16u)) + (first_1 >> 16u)) + (second_1 >> 16u);
    return metal::uint2((second_1 << 16u) | (low_1 & 65535u), high_1);
}

uint funnel(
    uint high,
    uint low,
    uint shift
) {
    return (high << shift) | ((shift == 0u) ? 0u : (low >> (32u - shift)));
}

uint inverse_two_pi(
    uint i
) {
    switch(i) {
        case 1u: {
            return 683565275u;
        }
        case 2u: {
            return 2475754826u;
        }
        case 3u: {
            return 2131351028u;
        }
        case 4u: {
            return 2102212464u;
        }
        case 5u: {
            return 920167782u;
        }
        case 6u: {
            return 1326507024u;
        }
        case 7u: {
            return 2140428522u;
        }
        default: {
            return 0u;
        }
    }
}

uint inverse_two_pi_from(
    uint bit
) {
    uint word_1 = bit >> 5u;
    uint _e3 = inverse_two_pi(word_1);
    uint _e6 = inverse_two_pi(word_1 + 1u);
    uint _e9 = funnel(_e3, _e6, bit & 31u);
    return _e9;
}

metal::uint2 turn_of(
    float x_5
) {
    uint bits_3 = as_type<uint>(x_5);
    uint mantissa_1 = (bits_3 & 8388607u) | 8388608u;
    uint start = ((bits_3 >> 23u) & 255u) - 118u;
    uint _e14 = inverse_two_pi_from(start + 64u);
    metal::uint2 _e15 = mul_wide(mantissa_1, _e14);
    uint _e18 = inverse_two_pi_from(start + 32u);
    metal::uint2 _e19 = mul_wide(mantissa_1, _e18);
    uint second_2 = _e19.x + _e15.y;
    uint carry = _e19.y + ((second_2 < _e15.y) ? 1u : 0u);
    uint _e30 = inverse_two_pi_from(start);
    return metal::uint2((mantissa_1 * _e30) + carry, second_2);
}

float sine_of_turn(
    metal::uint2 turn,
    uint quarters_1
) {
    uint nearest = (turn.x + 536870912u) >> 30u;
    uint rest = turn.x - (nearest << 30u);
    bool negative = rest >= 2147483648u;
    uint low_2 = negative ? (0u - turn.y) : turn.y;
    uint high_2 = negative ? (~(rest) + ((turn.y == 0u) ? 1u : 0u)) : rest;
    uint zeros = (high_2 == 0u) ? (32u + metal::clz(low_2)) : metal::clz(high_2);
    uint _e36 = funnel(high_2, low_2, zeros & 31u);
    uint top = (high_2 == 0u) ? (low_2 << (zeros & 31u)) : _e36;
    float _e49 = power_of_two(as_type<int>(as_type<uint>(-32) - as_type<uint>(static_cast<int>(metal::min(zeros, 64u)))));
    float part = (static_cast<float>(top) * _e49) * 6.2831855;
    float angle_1 = negative ? -(part) : part;
    float _e56 = sine_or_cosine(angle_1, nearest + quarters_1);
    return _e56;
}

float sine_1(
    float x_6,
    uint quarters_2
) {
    float magnitude_2 = metal::abs(x_6);
    if (magnitude_2 < 0.78) {
        float _e5 = sine_or_cosine(x_6, quarters_2);
        return _e5;
    }
    bool _e6 = is_finite(x_6);
    if (!(_e6)) {
        float _e10 = or_bits(x_6, NAN_BITS, true);
        return _e10;
    }
    metal::uint2 _e11 = turn_of(magnitude_2);
    uint low_3 = 0u - _e11.y;
    metal::uint2 other = metal::uint2(~(_e11.x) + ((_e11.y == 0u) ? 1u : 0u), low_3);
    float _e28 = sine_of_turn((x_6 < 0.0) ? other : _e11, quarters_2);
    return _e28;
}

float hyperbolic_tangent(
    float x_7
) {
    float sum_2 = {};
    float magnitude_3 = metal::abs(x_7);
    float _e6 = exponential(2.0 * metal::min(magnitude_3, 20.0));
    float far = 1.0 - (2.0 / (_e6 + 1.0));
    float square_2 = x_7 * x_7;
    sum_2 = metal::fma(0.0022927448, square_2, -0.008343945);
    float _e18 = sum_2;
    sum_2 = metal::fma(_e18, square_2, 0.021768918);
    float _e21 = sum_2;
    sum_2 = metal::fma(_e21, square_2, -0.05395926);
    float _e24 = sum_2;
    sum_2 = metal::fma(_e24, square_2, 0.13333304);
    float _e27 = sum_2;
    sum_2 = metal::fma(_e27, square_2, -0.33333334);
    float _e30 = sum_2;
    float near = metal::fma(_e30 * square_2, x_7, x_7);
    return (magnitude_3 < 0.625) ? near : ((x_7 < 0.0) ? -(far) : far);
}

float sigmoid(
    float x_8
) {
    float _e3 = exponential(-(metal::abs(x_8)));
    return ((x_8 < 0.0) ? _e3 : 1.0) / (1.0 + _e3);
}

float silu(
    float x_9
) {
    float _e1 = sigmoid(x_9);
    float _e7 = or_bits(x_9 * _e1, NAN_BITS, as_type<uint>(x_9) == 4286578688u);
    return _e7;
}

float gelu(
    float x_10
) {
    float fit = {};
    float magnitude_4 = metal::min(metal::abs(x_10), 20.0);
    float t = 1.0 / metal::fma(magnitude_4, 0.25, 1.0);
    fit = metal::fma(0.015383603, t, -0.056345463);
    float _e13 = fit;
    fit = metal::fma(_e13, t, 0.036615256);
    float _e16 = fit;
    fit = metal::fma(_e16, t, 0.048318084);
    float _e19 = fit;
    fit = metal::fma(_e19, t, -0.00367796);
    float _e22 = fit;
    fit = metal::fma(_e22, t, 0.09537557);
    float _e25 = fit;
    fit = metal::fma(_e25, t, 0.069011636);
    float _e28 = fit;
    fit = metal::fma(_e28, t, 0.09615087);
    float _e31 = fit;
    fit = metal::fma(_e31, t, 0.09941662);
    float _e34 = fit;
    fit = metal::fma(_e34, t, 0.09975179);
    float _e40 = exponential((-0.5 * magnitude_4) * magnitude_4);
    float _e42 = fit;
    float tail = (_e40 * t) * _e42;
    float y_5 = x_10 * ((x_10 < 0.0) ? tail : (1.0 - tail));
    float _e54 = or_bits(y_5, NAN_BITS, as_type<uint>(x_10) == 4286578688u);
    return _e54;
}

float gelu_tanh(
    float x_11
) {
    float bounded_1 = metal::clamp(x_11, -20.0, 20.0);
    float slope = metal::fma(bounded_1 * bounded_1, 0.071354814, 1.5957692);
    float _e9 = sigmoid(slope * bounded_1);
    float y_6 = x_11 * _e9;
    float _e15 = or_bits(y_6, NAN_BITS, as_type<uint>(x_11) == 4286578688u);
    return _e15;
}

float gelu_quick(
    float x_12
) {
    float _e6 = sigmoid(1.702 * metal::clamp(x_12, -100.0, 100.0));
    float y_7 = x_12 * _e6;
    float _e12 = or_bits(y_7, NAN_BITS, as_type<uint>(x_12) == 4286578688u);
    return _e12;
}

float logarithm_of_one_and(
    float u
) {
    float _e4 = twice_atanh(u / (2.0 + u));
    return _e4;
}

float softplus(
    float x_13
) {
    float _e5 = exponential(-(metal::abs(x_13)));
    float _e6 = logarithm_of_one_and(_e5);
    return metal::max(x_13, 0.0) + _e6;
}

float of_number(
    float x_14,
    constant Params& params
) {
    switch(KIND) {
        case 0u: {
            return -(x_14);
        }
        case 1u: {
            return metal::abs(x_14);
        }
        case 2u: {
            return x_14 * x_14;
        }
        case 3u: {
            float _e5 = square_root(x_14);
            float _e10 = or_bits(_e5, NAN_BITS, as_type<uint>(x_14) > 2147483648u);
            return _e10;
        }
        case 4u: {
            float _e11 = exponential(x_14);
            return _e11;
        }
        case 5u: {
            float _e12 = logarithm(x_14);
            return _e12;
        }
        case 6u: {
            float _e14 = sine_1(x_14, 0u);
            return _e14;
        }
        case 7u: {
            float _e16 = sine_1(x_14, 1u);
            return _e16;
        }
        case 8u: {
            float _e17 = hyperbolic_tangent(x_14);
            return _e17;
        }
        case 9u: {
            float _e18 = sigmoid(x_14);
            return _e18;
        }
        case 10u: {
            float _e19 = silu(x_14);
            return _e19;
        }
        case 11u: {
            float _e20 = gelu(x_14);
            return _e20;
        }
        case 12u: {
            float _e21 = gelu_tanh(x_14);
            return _e21;
        }
        case 13u: {
            float _e22 = gelu_quick(x_14);
            return _e22;
        }
        case 14u: {
            return metal::max(x_14, 0.0);
        }
        case 15u: {
            return metal::max(x_14, 0.0) * metal::max(x_14, 0.0);
        }
        case 16u: {
            float _e33 = params.extra.x;
            return (x_14 < 0.0) ? (_e33 * x_14) : x_14;
        }
        case 17u: {
            float _e38 = softplus(x_14);
            return _e38;
        }
        case 18u: {
            float _e42 = params.extra.x;
            float _e46 = params.extra.y;
            return metal::clamp(x_14, _e42, _e46);
        }
        case 19u: {
            float _e51 = params.extra.x;
            return x_14 * _e51;
        }
        default: {
            return x_14;
        }
    }
}

bool is_nan(
    float x_15
) {
    return (as_type<uint>(x_15) & 2147483647u) > INFINITY_BITS;
}

float keep_nan(
    float y_1,
    float x_16
) {
    bool _e3 = is_nan(x_16);
    float _e4 = or_bits(y_1, as_type<uint>(x_16), _e3);
    return _e4;
}

float f(
    float x_17,
    constant Params& params
) {
    float _e1 = of_number(x_17, params);
    float _e2 = keep_nan(_e1, x_17);
    return _e2;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

metal::uint4 unravel(
    uint i_1,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_1);
    }
    uint z = i_1 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_1 - (z * dims_1.w));
    }
    uint y_8 = z / dims_1.z;
    uint x_18 = y_8 / dims_1.y;
    return metal::uint4(x_18, y_8 - (x_18 * dims_1.y), z - (y_8 * dims_1.z), i_1 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

float decode(
    uint word,
    uint i_2,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_1 = (word >> ((i_2 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_1 << 16u);
    }
    return float2(as_type<half2>(half_1)).x;
}

uint word_of(
    uint i_3,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_3 : (i_3 >> 1u);
}

float a_at(
    uint i_4,
    device type_8 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a_1[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
}

void put(
    uint i_5,
    float value,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_6,
    float first,
    float second,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(first);
    out[i_6 + 1u] = as_type<uint>(second);
    return;
}

struct unaryInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void unary(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_8 const& a_1 [[user(fake0)]]
, device type_8& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first_2 = ((_e3 * WORKGROUP) + lane) * PER;
    metal::uint4 dims_2 = params.dims;
    uint _e12 = count_of(dims_2);
    if (first_2 >= _e12) {
        return;
    }
    metal::uint4 _e14 = unravel(first_2, dims_2);
    View _e17 = params.a;
    uint _e18 = position(_e17, _e14);
    View _e21 = params.out;
    uint _e22 = position(_e21, _e14);
    float _e23 = a_at(_e18, a_1, _buffer_sizes);
    float _e24 = f(_e23, params);
    if (true) {
        put(_e22, _e24, out, _buffer_sizes);
        return;
    } else {
        uint _e33 = params.a.strides.w;
        float _e35 = a_at(_e18 + _e33, a_1, _buffer_sizes);
        float _e36 = f(_e35, params);
        put_pair(_e22, _e24, _e36, out, _buffer_sizes);
        return;
    }
}
