// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
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
    View b;
};
typedef uint type_6[1];
constant uint ADD = 0u;
constant uint SUB = 1u;
constant uint MUL = 2u;
constant uint DIV = 3u;
constant uint SWIGLU = 4u;
constant uint GEGLU = 5u;
constant uint INFINITY_BITS = 2139095040u;
constant uint NAN_BITS = 2143289344u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint KIND = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;
constant uint A_DTYPE = 0u;
constant uint B_DTYPE = 0u;

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

float quotient(
    float x_1,
    float y
) {
    uint divisor = as_type<uint>(y) & 2147483647u;
    if (divisor >= 8388608u) {
        return x_1 / y;
    }
    if ((as_type<uint>(x_1) & 2147483647u) >= 1568669696u) {
        float _e13 = scaled_up(y);
        return (x_1 / _e13) * 18446744000000000000.0;
    }
    float _e17 = scaled_up(x_1);
    float _e18 = scaled_up(y);
    return _e17 / _e18;
}

float or_bits(
    float y_1,
    uint bits,
    bool condition
) {
    return as_type<float>(condition ? bits : as_type<uint>(y_1));
}

bool is_nan(
    float x_2
) {
    return (as_type<uint>(x_2) & 2147483647u) > INFINITY_BITS;
}

float keep_nan(
    float y_2,
    float x_3
) {
    bool _e3 = is_nan(x_3);
    float _e4 = or_bits(y_2, as_type<uint>(x_3), _e3);
    return _e4;
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
    float x_4
) {
    float sum = 0.00019875691;
    float bounded = metal::clamp(x_4, -104.0, 89.0);
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
    float y_4 = metal::fma(_e41, r * r, r) + 1.0;
    int half_ = n_1 >> 1u;
    float _e48 = power_of_two(half_);
    float _e51 = power_of_two(as_type<int>(as_type<uint>(n_1) - as_type<uint>(half_)));
    float scaled = (y_4 * _e48) * _e51;
    float _e56 = or_bits(scaled, INFINITY_BITS, x_4 > 88.72284);
    return _e56;
}

float sigmoid(
    float x_5
) {
    float _e3 = exponential(-(metal::abs(x_5)));
    return ((x_5 < 0.0) ? _e3 : 1.0) / (1.0 + _e3);
}

float silu(
    float x_6
) {
    float _e1 = sigmoid(x_6);
    float _e7 = or_bits(x_6 * _e1, NAN_BITS, as_type<uint>(x_6) == 4286578688u);
    return _e7;
}

float gelu(
    float x_7
) {
    float fit = {};
    float magnitude_1 = metal::min(metal::abs(x_7), 20.0);
    float t = 1.0 / metal::fma(magnitude_1, 0.25, 1.0);
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
    float _e40 = exponential((-0.5 * magnitude_1) * magnitude_1);
    float _e42 = fit;
    float tail = (_e40 * t) * _e42;
    float y_5 = x_7 * ((x_7 < 0.0) ? tail : (1.0 - tail));
    float _e54 = or_bits(y_5, NAN_BITS, as_type<uint>(x_7) == 4286578688u);
    return _e54;
}

float f(
    float x_8,
    float y_3
) {
    switch(KIND) {
        case 0u: {
            return x_8 + y_3;
        }
        case 1u: {
            return x_8 - y_3;
        }
        case 2u: {
            return x_8 * y_3;
        }
        case 3u: {
            float _e6 = quotient(x_8, y_3);
            return _e6;
        }
        case 4u: {
            float _e7 = silu(x_8);
            float _e8 = keep_nan(_e7, x_8);
            return _e8 * y_3;
        }
        case 5u: {
            float _e10 = gelu(x_8);
            float _e11 = keep_nan(_e10, x_8);
            return _e11 * y_3;
        }
        default: {
            float _e15 = keep_nan(metal::max(x_8, 0.0), x_8);
            return _e15 * y_3;
        }
    }
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
    uint i,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i);
    }
    uint z = i / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i - (z * dims_1.w));
    }
    uint y_6 = z / dims_1.z;
    uint x_9 = y_6 / dims_1.y;
    return metal::uint4(x_9, y_6 - (x_9 * dims_1.y), z - (y_6 * dims_1.z), i - (z * dims_1.w));
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
    uint i_1,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_1 = (word >> ((i_1 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_1 << 16u);
    }
    return float2(as_type<half2>(half_1)).x;
}

uint word_of(
    uint i_2,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_2 : (i_2 >> 1u);
}

float a_at(
    uint i_3,
    device type_6 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_3, A_DTYPE);
    return _e7;
}

float b_at(
    uint i_4,
    device type_6 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_4, B_DTYPE);
    return _e7;
}

void put(
    uint i_5,
    float value,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_6,
    float first,
    float second,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(first);
    out[i_6 + 1u] = as_type<uint>(second);
    return;
}

struct binaryInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void binary(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_6 const& a [[user(fake0)]]
, device type_6 const& b [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first_1 = ((_e3 * WORKGROUP) + lane) * PER;
    metal::uint4 dims_2 = params.dims;
    uint _e12 = count_of(dims_2);
    if (first_1 >= _e12) {
        return;
    }
    metal::uint4 _e14 = unravel(first_1, dims_2);
    View _e17 = params.a;
    uint _e18 = position(_e17, _e14);
    View _e21 = params.b;
    uint _e22 = position(_e21, _e14);
    View _e25 = params.out;
    uint _e26 = position(_e25, _e14);
    float _e27 = a_at(_e18, a, _buffer_sizes);
    float _e28 = b_at(_e22, b, _buffer_sizes);
    float _e29 = f(_e27, _e28);
    if (true) {
        put(_e26, _e29, out, _buffer_sizes);
        return;
    } else {
        uint _e38 = params.a.strides.w;
        float _e40 = a_at(_e18 + _e38, a, _buffer_sizes);
        uint _e45 = params.b.strides.w;
        float _e47 = b_at(_e22 + _e45, b, _buffer_sizes);
        float _e48 = f(_e40, _e47);
        put_pair(_e26, _e29, _e48, out, _buffer_sizes);
        return;
    }
}
