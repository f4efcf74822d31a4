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
    metal::uint4 rows;
    metal::uint4 columns;
    metal::uint4 bounds;
};
typedef uint type_5[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint LINEAR = 0u;
constant uint WIDE = 0u;
constant uint A_DTYPE = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;

metal::uint2 add_wide(
    metal::uint2 a,
    metal::uint2 b
) {
    uint low = a.x + b.x;
    return metal::uint2(low, (a.y + b.y) + ((low < b.x) ? 1u : 0u));
}

metal::uint2 mul_wide(
    uint a_1,
    uint b_1
) {
    uint low_1 = (a_1 & 65535u) * (b_1 & 65535u);
    uint first_1 = ((a_1 >> 16u) * (b_1 & 65535u)) + (low_1 >> 16u);
    uint second_1 = ((a_1 & 65535u) * (b_1 >> 16u)) + (first_1 & 65535u);
    uint high = (((a_1 >> 16u) * (b_1 >> 16u)) + (first_1 >> 16u)) + (second_1 >> 16u);
    return metal::uint2((second_1 << 16u) | (low_1 & 65535u), high);
}

metal::uint2 div_wide(
    metal::uint2 number,
    uint divisor
) {
    uint rest = {};
    uint quotient = {};
    uint i = 0u;
    bool local = {};
    rest = number.y;
    quotient = number.x;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e37 = i;
            i = _e37 + 1u;
        }
        loop_init = false;
        uint _e8 = i;
        if (_e8 < 32u) {
        } else {
            break;
        }
        {
            uint _e11 = rest;
            bool over = _e11 >= 2147483648u;
            uint _e14 = rest;
            uint _e17 = quotient;
            rest = (_e14 << 1u) | (_e17 >> 31u);
            uint _e21 = quotient;
            quotient = _e21 << 1u;
            if (!(over)) {
                uint _e27 = rest;
                local = _e27 >= divisor;
            } else {
                local = true;
            }
            bool _e30 = local;
            if (_e30) {
                uint _e31 = rest;
                rest = _e31 - divisor;
                uint _e33 = quotient;
                quotient = _e33 | 1u;
            }
        }
    }
    uint _e39 = quotient;
    uint _e40 = rest;
    return metal::uint2(_e39, _e40);
}

metal::uint2 place_of(
    uint i_1,
    metal::uint4 map
) {
    bool local_1 = {};
    if (false) {
        metal::uint2 _e7 = mul_wide(i_1, map.x);
        metal::uint2 _e11 = add_wide(_e7, metal::uint2(map.y, 0u));
        if (_e11.y == 0u) {
            local_1 = _e11.x < map.z;
        } else {
            local_1 = false;
        }
        bool _e21 = local_1;
        if (_e21) {
            return metal::uint2(0u);
        }
        metal::uint2 number_1 = metal::uint2(_e11.x - map.z, _e11.y - ((_e11.x < map.z) ? 1u : 0u));
        metal::uint2 _e37 = div_wide(number_1, map.w);
        return _e37;
    }
    uint sum = (i_1 * map.x) + map.y;
    uint number_2 = sum - metal::min(sum, map.z);
    uint whole = number_2 / map.w;
    return metal::uint2(whole, number_2 - (whole * map.w));
}

float decode(
    uint word,
    uint i_2,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_2 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_3,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_3 : (i_3 >> 1u);
}

float a_at(
    uint i_4,
    device type_5 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a_2[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
}

float pixel(
    uint image,
    uint row,
    uint column,
    constant Params& params,
    device type_5 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.bounds.y;
    uint _e12 = params.a.strides.z;
    uint _e19 = params.a.strides.w;
    float _e22 = a_at((image + ((row - _e6) * _e12)) + (column * _e19), a_2, _buffer_sizes);
    return _e22;
}

float upscaled(
    metal::uint4 at,
    constant Params& params,
    device type_5 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e4 = params.a.offset;
    uint _e10 = params.a.strides.x;
    uint _e18 = params.a.strides.y;
    uint image_1 = (_e4 + (at.x * _e10)) + (at.y * _e18);
    uint _e25 = params.bounds.x;
    metal::uint4 _e29 = params.rows;
    metal::uint2 _e30 = place_of(at.z + _e25, _e29);
    metal::uint4 _e34 = params.columns;
    metal::uint2 _e35 = place_of(at.w, _e34);
    uint _e40 = params.bounds.z;
    uint top = metal::min(_e30.x, _e40);
    uint _e46 = params.bounds.w;
    uint left = metal::min(_e35.x, _e46);
    if (true) {
        float _e52 = pixel(image_1, top, left, params, a_2, _buffer_sizes);
        return _e52;
    }
    uint _e58 = params.bounds.z;
    uint bottom = metal::min(top + 1u, _e58);
    uint _e65 = params.bounds.w;
    uint right = metal::min(left + 1u, _e65);
    uint _e72 = params.rows.w;
    float down = static_cast<float>(_e30.y) / static_cast<float>(_e72);
    uint _e78 = params.rows.w;
    uint _e85 = params.rows.w;
    float up = static_cast<float>(_e78 - _e30.y) / static_cast<float>(_e85);
    uint _e93 = params.columns.w;
    float far = static_cast<float>(_e35.y) / static_cast<float>(_e93);
    uint _e99 = params.columns.w;
    uint _e106 = params.columns.w;
    float near = static_cast<float>(_e99 - _e35.y) / static_cast<float>(_e106);
    float _e109 = pixel(image_1, top, left, params, a_2, _buffer_sizes);
    float _e111 = pixel(image_1, top, right, params, a_2, _buffer_sizes);
    float upper = (_e109 * near) + (_e111 * far);
    float _e114 = pixel(image_1, bottom, left, params, a_2, _buffer_sizes);
    float _e116 = pixel(image_1, bottom, right, params, a_2, _buffer_sizes);
    float lower = (_e114 * near) + (_e116 * far);
    return (upper * up) + (lower * down);
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
    uint i_5,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_5);
    }
    uint z = i_5 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_5 - (z * dims_1.w));
    }
    uint y = z / dims_1.z;
    uint x = y / dims_1.y;
    return metal::uint4(x, y - (x * dims_1.y), z - (y * dims_1.z), i_5 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put(
    uint i_6,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_7,
    float first,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_7] = as_type<uint>(first);
    out[i_7 + 1u] = as_type<uint>(second);
    return;
}

struct upscaleInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void upscale(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& a_2 [[user(fake0)]]
, device type_5& out [[user(fake0)]]
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
    View _e17 = params.out;
    uint _e18 = position(_e17, _e14);
    float _e19 = upscaled(_e14, params, a_2, _buffer_sizes);
    if (true) {
        put(_e18, _e19, out, _buffer_sizes);
        return;
    } else {
        float _e30 = upscaled(_e14 + metal::uint4(0u, 0u, 0u, 1u), params, a_2, _buffer_sizes);
        put_pair(_e18, _e19, _e30, out, _buffer_sizes);
        return;
    }
}
