// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
    uint size4;
};

struct Params {
    metal::uint4 dims;
    metal::uint4 out;
    metal::uint4 a;
    metal::uint4 state;
    metal::uint4 scalar;
};
typedef int type_3[1];
typedef uint type_5[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;

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
    device type_5 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_2, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_2, B_DTYPE);
    return _e7;
}

float a_at(
    uint i_3,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_3, A_DTYPE);
    return _e7;
}

float before(
    uint t,
    uint i_4,
    uint valid_1,
    constant Params& params,
    device type_5 const& b,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (t >= valid_1) {
        return 0.0;
    }
    if (t == 0u) {
        uint _e10 = params.state.x;
        uint _e14 = params.state.y;
        float _e17 = b_at(_e10 + (i_4 * _e14), b, _buffer_sizes);
        return _e17;
    }
    uint _e21 = params.a.x;
    uint _e27 = params.dims.w;
    uint _e32 = params.a.y;
    uint _e38 = params.a.z;
    float _e41 = a_at((_e21 + (((t - 1u) - _e27) * _e32)) + (i_4 * _e38), a, _buffer_sizes);
    return _e41;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

void put(
    uint i_5,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_6,
    float first,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(first);
    out[i_6 + 1u] = as_type<uint>(second);
    return;
}

struct token_shiftInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void token_shift(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3 const& scalars [[user(fake0)]]
, device type_5 const& b [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint valid = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first_1 = ((_e3 * WORKGROUP) + lane) * PER;
    uint _e12 = params.dims.y;
    uint t_1 = first_1 / _e12;
    uint _e17 = params.dims.x;
    if (t_1 >= _e17) {
        return;
    }
    uint _e22 = params.dims.y;
    uint i_7 = first_1 - (t_1 * _e22);
    uint _e28 = params.scalar.z;
    valid = _e28;
    uint _e33 = params.scalar.x;
    if (_e33 != 0u) {
        uint _e40 = params.scalar.y;
        int _e42 = scalars[_e40];
        valid = static_cast<uint>(metal::max(_e42, 0));
    }
    uint _e49 = params.out.x;
    uint _e53 = params.out.y;
    uint _e59 = params.out.z;
    uint place = (_e49 + (t_1 * _e53)) + (i_7 * _e59);
    uint _e65 = params.dims.z;
    uint _e67 = valid;
    float _e68 = before(t_1 + _e65, i_7, _e67, params, b, a, _buffer_sizes);
    if (true) {
        put(place, _e68, out, _buffer_sizes);
        return;
    } else {
        uint _e76 = params.dims.z;
        uint _e80 = valid;
        float _e81 = before(t_1 + _e76, i_7 + 1u, _e80, params, b, a, _buffer_sizes);
        put_pair(place, _e68, _e81, out, _buffer_sizes);
        return;
    }
}
