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
struct Turns {
    metal::uint4 dims;
    View out;
    View a;
    View b;
    uint first_token;
    uint pairs;
    char _pad6[8];
};
typedef uint type_2[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint PER = 1u;
constant uint NEIGHBOURS = 0u;
constant uint A_DTYPE = 0u;
constant uint MATRICES = 1u;
constant uint B_DTYPE = 0u;

metal::uint4 unravel(
    uint i,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i);
    }
    uint z = i / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i - (z * dims.w));
    }
    uint y = z / dims.z;
    uint x_1 = y / dims.y;
    return metal::uint4(x_1, y - (x_1 * dims.y), z - (y * dims.z), i - (z * dims.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put(
    uint i_1,
    float value,
    device type_2& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_1] = as_type<uint>(value);
    return;
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
    device type_2 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
}

void put_pair(
    uint i_5,
    float first,
    float second,
    device type_2& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(first);
    out[i_5 + 1u] = as_type<uint>(second);
    return;
}

float b_at(
    uint i_6,
    device type_2 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_6, B_DTYPE);
    return _e7;
}

metal::float2 turned(
    uint token,
    uint pair,
    metal::float2 x,
    constant Turns& turns,
    device type_2 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (false) {
        View _e9 = turns.b;
        uint _e13 = position(_e9, metal::uint4(0u, token, pair, 0u));
        float _e14 = b_at(_e13, b, _buffer_sizes);
        View _e17 = turns.b;
        uint _e21 = position(_e17, metal::uint4(0u, token, pair, 1u));
        float _e22 = b_at(_e21, b, _buffer_sizes);
        return metal::float2((x.x * _e14) - (x.y * _e22), (x.x * _e22) + (x.y * _e14));
    }
    View _e36 = turns.b;
    uint _e40 = position(_e36, metal::uint4(token, pair, 0u, 0u));
    uint _e45 = turns.b.strides.z;
    uint second_1 = _e40 + _e45;
    uint next = turns.b.strides.w;
    float _e53 = b_at(_e40, b, _buffer_sizes);
    float _e57 = b_at(_e40 + next, b, _buffer_sizes);
    float _e61 = b_at(second_1, b, _buffer_sizes);
    float _e65 = b_at(second_1 + next, b, _buffer_sizes);
    return metal::float2((x.x * _e53) + (x.y * _e57), (x.x * _e61) + (x.y * _e65));
}

void turn(
    uint invocation,
    constant Turns& turns,
    device type_2& out,
    device type_2 const& a,
    device type_2 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 dims_1 = turns.dims;
    if (invocation >= (((dims_1.x * dims_1.y) * dims_1.z) * dims_1.w)) {
        return;
    }
    metal::uint4 _e12 = unravel(invocation, dims_1);
    metal::uint4 head = metal::uint4(_e12.xyz, 0u);
    View _e18 = turns.a;
    uint _e19 = position(_e18, head);
    uint step = turns.a.strides.w;
    View _e27 = turns.out;
    uint _e28 = position(_e27, head);
    uint stride = turns.out.strides.w;
    uint _e36 = turns.first_token;
    uint token_1 = _e36 + _e12.y;
    uint _e49 = turns.pairs;
    uint turning = _e49 / 1u;
    if (_e12.w >= turning) {
        uint _e56 = turns.pairs;
        uint i_7 = (2u * _e56) + ((_e12.w - turning) * PER);
        if (true) {
            float _e71 = a_at(_e19 + (i_7 * step), a, _buffer_sizes);
            put(_e28 + (i_7 * stride), _e71, out, _buffer_sizes);
        } else {
            float _e75 = a_at(_e19 + (i_7 * step), a, _buffer_sizes);
            float _e80 = a_at(_e19 + ((i_7 + 1u) * step), a, _buffer_sizes);
            put_pair(_e28 + i_7, _e75, _e80, out, _buffer_sizes);
        }
        return;
    }
    uint pair_1 = _e12.w * 1u;
    uint i_8 = false ? (2u * pair_1) : pair_1;
    uint _e92 = turns.pairs;
    uint j = false ? (i_8 + 1u) : (pair_1 + _e92);
    float _e103 = a_at(_e19 + (i_8 * step), a, _buffer_sizes);
    float _e106 = a_at(_e19 + (j * step), a, _buffer_sizes);
    metal::float2 x_2 = metal::float2(_e103, _e106);
    metal::float2 _e108 = turned(token_1, pair_1, x_2, turns, b, _buffer_sizes);
    if (true) {
        put(_e28 + (i_8 * stride), _e108.x, out, _buffer_sizes);
        put(_e28 + (j * stride), _e108.y, out, _buffer_sizes);
        return;
    } else {
        if (false) {
            put_pair(_e28 + i_8, _e108.x, _e108.y, out, _buffer_sizes);
            return;
        } else {
            float _e130 = a_at(_e19 + ((i_8 + 1u) * step), a, _buffer_sizes);
            float _e135 = a_at(_e19 + ((j + 1u) * step), a, _buffer_sizes);
            metal::float2 next_1 = metal::float2(_e130, _e135);
            metal::float2 _e139 = turned(token_1, pair_1 + 1u, next_1, turns, b, _buffer_sizes);
            put_pair(_e28 + i_8, _e108.x, _e139.x, out, _buffer_sizes);
            put_pair(_e28 + j, _e108.y, _e139.y, out, _buffer_sizes);
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

struct rope_applyInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void rope_apply(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Turns& turns [[user(fake0)]]
, device type_2& out [[user(fake0)]]
, device type_2 const& a [[user(fake0)]]
, device type_2 const& b [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    turn((_e3 * 256u) + lane, turns, out, a, b, _buffer_sizes);
    return;
}
