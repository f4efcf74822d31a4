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
    uint first_token;
    uint pairs;
    char _pad6[8];
};
typedef uint type_3[1];
typedef metal::atomic_uint type_6[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint MATRICES = 0u;
constant uint NEIGHBOURS = 0u;
constant uint B_DTYPE = 0u;
constant uint PER = 1u;
constant uint OUT_DTYPE = 1u;
constant uint A_DTYPE = 1u;

float decode(
    uint word,
    uint i,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_1,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_1 : (i_1 >> 1u);
}

float b_at(
    uint i_2,
    device type_3 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_2, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_2, B_DTYPE);
    return _e7;
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

metal::float2 rotated(
    uint token,
    uint pair,
    metal::float2 x,
    constant Params& params,
    device type_3 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e9 = params.b;
        uint _e13 = position(_e9, metal::uint4(0u, token, pair, 0u));
        float _e14 = b_at(_e13, b, _buffer_sizes);
        View _e17 = params.b;
        uint _e21 = position(_e17, metal::uint4(0u, token, pair, 1u));
        float _e22 = b_at(_e21, b, _buffer_sizes);
        return metal::float2((x.x * _e14) - (x.y * _e22), (x.x * _e22) + (x.y * _e14));
    }
    View _e36 = params.b;
    uint _e40 = position(_e36, metal::uint4(token, pair, 0u, 0u));
    uint _e45 = params.b.strides.z;
    uint second_1 = _e40 + _e45;
    uint next = params.b.strides.w;
    float _e53 = b_at(_e40, b, _buffer_sizes);
    float _e57 = b_at(_e40 + next, b, _buffer_sizes);
    float _e61 = b_at(second_1, b, _buffer_sizes);
    float _e65 = b_at(second_1 + next, b, _buffer_sizes);
    return metal::float2((x.x * _e53) + (x.y * _e57), (x.x * _e61) + (x.y * _e65));
}

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

metal::uint4 unravel(
    uint i_3,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_3);
    }
    uint z = i_3 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_3 - (z * dims_1.w));
    }
    uint y = z / dims_1.z;
    uint x_1 = y / dims_1.y;
    return metal::uint4(x_1, y - (x_1 * dims_1.y), z - (y * dims_1.z), i_3 - (z * dims_1.w));
}

uint encode(
    float value,
    uint dtype_2
) {
    uint bits = as_type<uint>(value);
    uint magnitude = bits & 2147483647u;
    if (dtype_2 == BF16_) {
        uint rounded = ((bits + 32767u) + ((bits >> 16u) & 1u)) >> 16u;
        return (magnitude > 2139095040u) ? ((bits >> 16u) | 64u) : rounded;
    }
    uint sign = (bits >> 16u) & 32768u;
    if (magnitude >= 1199566848u) {
        return sign | ((magnitude > 2139095040u) ? 32256u : 31744u);
    }
    if (magnitude < 947912704u) {
        return sign | (as_type<uint>(as_type<float>(magnitude) + 0.5) - 1056964608u);
    }
    return sign | ((((magnitude - 939524096u) + 4095u) + ((magnitude >> 13u) & 1u)) >> 13u);
}

void put(
    uint i_4,
    float value_1,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_4 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_4 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_4 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

float a_at(
    uint i_5,
    device type_3 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_5, A_DTYPE);
    return _e7;
}

void put_pair(
    uint i_6,
    float first,
    float second,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = encode(first, OUT_DTYPE);
    uint _e10 = encode(second, OUT_DTYPE);
    metal::atomic_store_explicit(&out[i_6 >> 1u], _e8 | (_e10 << 16u), metal::memory_order_relaxed);
    return;
}

void rotate(
    uint invocation,
    constant Params& params,
    device type_3 const& b,
    device type_6& out,
    device type_3 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 dims_2 = params.dims;
    uint _e4 = count_of(dims_2);
    if (invocation >= _e4) {
        return;
    }
    metal::uint4 _e6 = unravel(invocation, dims_2);
    metal::uint4 head = metal::uint4(_e6.xyz, 0u);
    View _e12 = params.a;
    uint _e13 = position(_e12, head);
    uint step = params.a.strides.w;
    View _e21 = params.out;
    uint _e22 = position(_e21, head);
    uint stride = params.out.strides.w;
    uint _e30 = params.first_token;
    uint token_1 = _e30 + _e6.y;
    uint _e43 = params.pairs;
    uint rotating = _e43 / 1u;
    if (_e6.w >= rotating) {
        uint _e50 = params.pairs;
        uint i_7 = (2u * _e50) + ((_e6.w - rotating) * PER);
        if (true) {
            float _e65 = a_at(_e13 + (i_7 * step), a, _buffer_sizes);
            put(_e22 + (i_7 * stride), _e65, out, _buffer_sizes);
        } else {
            float _e69 = a_at(_e13 + (i_7 * step), a, _buffer_sizes);
            float _e74 = a_at(_e13 + ((i_7 + 1u) * step), a, _buffer_sizes);
            put_pair(_e22 + i_7, _e69, _e74, out, _buffer_sizes);
        }
        return;
    }
    uint pair_1 = _e6.w * 1u;
    uint i_8 = false ? (2u * pair_1) : pair_1;
    uint _e86 = params.pairs;
    uint j = false ? (i_8 + 1u) : (pair_1 + _e86);
    float _e97 = a_at(_e13 + (i_8 * step), a, _buffer_sizes);
    float _e100 = a_at(_e13 + (j * step), a, _buffer_sizes);
    metal::float2 x_2 = metal::float2(_e97, _e100);
    metal::float2 _e102 = rotated(token_1, pair_1, x_2, params, b, _buffer_sizes);
    if (true) {
        put(_e22 + (i_8 * stride), _e102.x, out, _buffer_sizes);
        put(_e22 + (j * stride), _e102.y, out, _buffer_sizes);
        return;
    } else {
        if (false) {
            put_pair(_e22 + i_8, _e102.x, _e102.y, out, _buffer_sizes);
            return;
        } else {
            float _e124 = a_at(_e13 + ((i_8 + 1u) * step), a, _buffer_sizes);
            float _e129 = a_at(_e13 + ((j + 1u) * step), a, _buffer_sizes);
            metal::float2 next_1 = metal::float2(_e124, _e129);
            metal::float2 _e133 = rotated(token_1, pair_1 + 1u, next_1, params, b, _buffer_sizes);
            put_pair(_e22 + i_8, _e102.x, _e133.x, out, _buffer_sizes);
            put_pair(_e22 + j, _e102.y, _e133.y, out, _buffer_sizes);
            return;
        }
    }
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

struct ropeInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void rope(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3 const& b [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, device type_3 const& a [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    rotate((_e3 * 256u) + lane, params, b, out, a, _buffer_sizes);
    return;
}
