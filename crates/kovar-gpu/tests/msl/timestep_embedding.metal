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
struct type_2 {
    metal::uint4 inner[256];
};
struct Params {
    metal::uint4 dims;
    View out;
    View a;
    metal::uint4 columns;
    metal::uint4 rest;
    type_2 frequencies;
};
typedef uint type_6[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint INFINITY_BITS = 2139095040u;
constant uint NAN_BITS = 2143289344u;
constant uint INTEGER = 0u;
constant uint FLIP = 0u;
constant uint WORKGROUP = 256u;
constant uint A_DTYPE = 0u;

uint word_or_zero(
    metal::uint3 number,
    int i
) {
    switch(i) {
        case 0: {
            return number.x;
        }
        case 1: {
            return number.y;
        }
        case 2: {
            return number.z;
        }
        default: {
            return 0u;
        }
    }
}

uint funnel(
    uint high,
    uint low,
    uint shift
) {
    return (high << shift) | ((shift == 0u) ? 0u : (low >> (32u - shift)));
}

uint bits_from(
    metal::uint3 number_1,
    int at
) {
    int word_1 = at >> 5u;
    uint shift_1 = static_cast<uint>(at & 31);
    uint _e9 = word_or_zero(number_1, as_type<int>(as_type<uint>(word_1) + as_type<uint>(1)));
    uint _e10 = word_or_zero(number_1, word_1);
    uint _e13 = funnel(_e9, _e10, 32u - shift_1);
    return (shift_1 == 0u) ? _e10 : _e13;
}

metal::uint2 mul_wide(
    uint a,
    uint b
) {
    uint low_1 = (a & 65535u) * (b & 65535u);
    uint first = ((a >> 16u) * (b & 65535u)) + (low_1 >> 16u);
    uint second = ((a & 65535u) * (b >> 16u)) + (first & 65535u);
    uint high_1 = (((a >> 16u) * (b >> 16u)) + (first >> 16u)) + (second >> 16u);
    return metal::uint2((second << 16u) | (low_1 & 65535u), high_1);
}

metal::uint2 add_wide(
    metal::uint2 a_1,
    metal::uint2 b_1
) {
    uint low_2 = a_1.x + b_1.x;
    return metal::uint2(low_2, (a_1.y + b_1.y) + ((low_2 < b_1.x) ? 1u : 0u));
}

int naga_neg(int val) {
    return as_type<int>(-as_type<uint>(val));
}

metal::uint2 turn_fraction(
    uint magnitude_1,
    int exponent_1,
    metal::uint4 frequency
) {
    metal::uint2 _e4 = mul_wide(magnitude_1, frequency.x);
    metal::uint2 _e6 = mul_wide(magnitude_1, frequency.y);
    metal::uint2 _e10 = add_wide(_e6, metal::uint2(_e4.y, 0u));
    metal::uint3 product = metal::uint3(_e4.x, _e10.x, _e10.y);
    int point = metal::clamp(naga_neg(as_type<int>(as_type<uint>(exponent_1) + as_type<uint>(as_type<int>(frequency.z)))), -64, 256);
    uint _e24 = bits_from(product, as_type<int>(as_type<uint>(point) - as_type<uint>(32)));
    uint _e27 = bits_from(product, as_type<int>(as_type<uint>(point) - as_type<uint>(64)));
    return metal::uint2(_e24, _e27);
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
    uint y_1 = z / dims_1.z;
    uint x_1 = y_1 / dims_1.y;
    return metal::uint4(x_1, y_1 - (x_1 * dims_1.y), z - (y_1 * dims_1.z), i_1 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put(
    uint i_2,
    float value,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_2] = as_type<uint>(value);
    return;
}

float decode(
    uint word,
    uint i_3,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_3 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_4,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_4 : (i_4 >> 1u);
}

float a_at(
    uint i_5,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, A_DTYPE);
    uint _e5 = a_2[_e3];
    float _e7 = decode(_e5, i_5, A_DTYPE);
    return _e7;
}

bool is_finite(
    float x
) {
    return (as_type<uint>(x) & 2147483647u) < INFINITY_BITS;
}

float power_of_two(
    int n
) {
    return as_type<float>(static_cast<uint>(as_type<int>(as_type<uint>(n) + as_type<uint>(127))) << 23u);
}

float sine_or_cosine(
    float angle,
    uint quarters
) {
    float sine = {};
    float cosine = {};
    float square = angle * angle;
    sine = metal::fma(-0.00019515296, square, 0.008332161);
    float _e7 = sine;
    sine = metal::fma(_e7, square, -0.16666655);
    float _e10 = sine;
    sine = metal::fma(_e10 * square, angle, angle);
    cosine = metal::fma(0.000024433157, square, -0.0013887316);
    float _e17 = cosine;
    cosine = metal::fma(_e17, square, 0.041666646);
    float _e20 = cosine;
    cosine = metal::fma(_e20 * square, square, metal::fma(-0.5, square, 1.0));
    float _e26 = sine;
    float _e27 = cosine;
    float y_2 = ((quarters & 1u) == 1u) ? _e27 : _e26;
    return ((quarters & 2u) == 2u) ? -(y_2) : y_2;
}

float sine_of_turn(
    metal::uint2 turn_1,
    uint quarters_1
) {
    uint nearest = (turn_1.x + 536870912u) >> 30u;
    uint rest = turn_1.x - (nearest << 30u);
    bool negative_1 = rest >= 2147483648u;
    uint low_3 = negative_1 ? (0u - turn_1.y) : turn_1.y;
    uint high_2 = negative_1 ? (~(rest) + ((turn_1.y == 0u) ? 1u : 0u)) : rest;
    uint zeros = (high_2 == 0u) ? (32u + metal::clz(low_3)) : metal::clz(high_2);
    uint _e36 = funnel(high_2, low_3, zeros & 31u);
    uint top = (high_2 == 0u) ? (low_3 << (zeros & 31u)) : _e36;
    float _e49 = power_of_two(as_type<int>(as_type<uint>(-32) - as_type<uint>(static_cast<int>(metal::min(zeros, 64u)))));
    float part = (static_cast<float>(top) * _e49) * 6.2831855;
    float angle_1 = negative_1 ? -(part) : part;
    float _e56 = sine_or_cosine(angle_1, nearest + quarters_1);
    return _e56;
}

float or_bits(
    float y,
    uint bits,
    bool condition
) {
    return as_type<float>(condition ? bits : as_type<uint>(y));
}

struct timestep_embeddingInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void timestep_embedding(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, device type_6 const& a_2 [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    bool local = {};
    uint magnitude = 0u;
    int exponent = 0;
    bool negative = {};
    bool finite = {};
    bool local_1 = {};
    metal::uint2 turn = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number_2 = (_e3 * WORKGROUP) + lane;
    uint _e10 = params.columns.y;
    uint row = number_2 / _e10;
    metal::uint4 dims_2 = params.dims;
    uint _e15 = count_of(dims_2);
    if (row >= _e15) {
        return;
    }
    uint _e20 = params.columns.y;
    uint i_6 = number_2 - (row * _e20);
    metal::uint4 _e23 = unravel(row, dims_2);
    View _e26 = params.a;
    uint _e27 = position(_e26, _e23);
    View _e30 = params.out;
    uint _e31 = position(_e30, _e23);
    if (i_6 == 0u) {
        uint _e39 = params.rest.x;
        local = _e39 == 1u;
    } else {
        local = false;
    }
    bool _e43 = local;
    if (_e43) {
        uint _e48 = params.columns.z;
        uint _e53 = params.columns.w;
        put(_e31 + ((2u * _e48) * _e53), 0.0, out, _buffer_sizes);
    }
    metal::uint4 frequency_1 = params.frequencies.inner[i_6];
    negative = frequency_1.w == 1u;
    finite = frequency_1.w != 2u;
    if (false) {
        uint _e79 = a_2[_e27];
        int t = as_type<int>(_e79);
        bool _e81 = negative;
        negative = _e81 != (t < 0);
        magnitude = (t < 0) ? (0u - static_cast<uint>(t)) : static_cast<uint>(t);
    } else {
        float _e92 = a_at(_e27, a_2, _buffer_sizes);
        uint bits_1 = as_type<uint>(_e92);
        uint biased = (bits_1 >> 23u) & 255u;
        magnitude = (bits_1 & 8388607u) | ((biased != 0u) ? 8388608u : 0u);
        exponent = as_type<int>(as_type<uint>(static_cast<int>(metal::max(biased, 1u))) - as_type<uint>(150));
        bool _e111 = negative;
        negative = _e111 != (bits_1 >= 2147483648u);
        bool _e115 = finite;
        if (_e115) {
            bool _e118 = is_finite(_e92);
            local_1 = _e118;
        } else {
            local_1 = false;
        }
        bool _e120 = local_1;
        finite = _e120;
    }
    uint _e121 = magnitude;
    int _e122 = exponent;
    metal::uint2 _e123 = turn_fraction(_e121, _e122, frequency_1);
    turn = _e123;
    bool _e125 = negative;
    if (_e125) {
        uint _e127 = turn.x;
        uint _e132 = turn.y;
        uint _e139 = turn.y;
        turn = metal::uint2(~(_e127) + ((_e132 == 0u) ? 1u : 0u), 0u - _e139);
    }
    uint _e145 = params.columns.x;
    uint column = _e145 + i_6;
    metal::uint2 _e147 = turn;
    float _e149 = sine_of_turn(_e147, FLIP);
    metal::uint2 _e150 = turn;
    float _e155 = sine_of_turn(_e150, 1u);
    uint _e159 = params.columns.w;
    bool _e163 = finite;
    float _e165 = or_bits(_e149, NAN_BITS, !(_e163));
    put(_e31 + (column * _e159), _e165, out, _buffer_sizes);
    uint _e169 = params.columns.z;
    uint _e174 = params.columns.w;
    bool _e178 = finite;
    float _e180 = or_bits(_e155, NAN_BITS, !(_e178));
    put(_e31 + ((_e169 + column) * _e174), _e180, out, _buffer_sizes);
    return;
}
