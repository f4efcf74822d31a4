// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
};

struct Params {
    metal::uint4 dims;
    metal::uint4 out;
    metal::uint4 a;
    metal::uint4 scalar;
};
typedef int type_3[1];
typedef uint type_5[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint WORKGROUP = 256u;
constant uint A_DTYPE = 0u;

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

void put(
    uint i,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i] = as_type<uint>(value);
    return;
}

float decode(
    uint word,
    uint i_1,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_1 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_2,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_2 : (i_2 >> 1u);
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

struct token_stateInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void token_state(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3 const& scalars [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint valid = {};
    bool local = {};
    bool local_1 = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint i_4 = (_e3 * WORKGROUP) + lane;
    uint _e10 = params.scalar.z;
    valid = _e10;
    uint _e15 = params.scalar.x;
    if (_e15 != 0u) {
        uint _e22 = params.scalar.y;
        int _e24 = scalars[_e22];
        uint _e28 = valid;
        valid = metal::min(static_cast<uint>(metal::max(_e24, 0)), _e28);
    }
    uint _e30 = valid;
    uint _e36 = params.dims.z;
    uint row = (_e30 - 1u) - _e36;
    uint _e41 = params.dims.y;
    if (i_4 < _e41) {
        uint _e45 = valid;
        uint _e49 = params.dims.z;
        local = _e45 > _e49;
    } else {
        local = false;
    }
    bool _e52 = local;
    if (_e52) {
        uint _e58 = params.dims.x;
        local_1 = row < _e58;
    } else {
        local_1 = false;
    }
    bool _e61 = local_1;
    if (_e61) {
        uint _e65 = params.out.x;
        uint _e69 = params.out.y;
        uint _e75 = params.a.x;
        uint _e79 = params.a.y;
        uint _e85 = params.a.z;
        float _e88 = a_at((_e75 + (row * _e79)) + (i_4 * _e85), a, _buffer_sizes);
        put(_e65 + (i_4 * _e69), _e88, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}
