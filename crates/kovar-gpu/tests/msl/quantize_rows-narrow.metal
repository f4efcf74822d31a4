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
typedef uint type_4[1];
typedef metal::atomic_uint type_7[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint BITS_MASK = 4294967295u;
constant uint A_DTYPE = 0u;
constant uint B_DTYPE = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;
constant uint SHIFT = 2u;

float raised(
    uint magnitude
) {
    if (magnitude < 8388608u) {
        return static_cast<float>(magnitude) * 0.0000000000000017763568;
    }
    return as_type<float>(magnitude + 838860800u);
}

uint naga_f2u32(float value) {
    return static_cast<uint>(metal::clamp(value, 0.0, 4294967000.0));
}

uint magnitude_of_code(
    uint x,
    uint scale
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    float quotient = 0.0;
    if (!((x > 2139095040u))) {
        local = scale > 2139095040u;
    } else {
        local = true;
    }
    bool _e9 = local;
    if (!(_e9)) {
        local_1 = scale == 2139095040u;
    } else {
        local_1 = true;
    }
    bool _e15 = local_1;
    if (!(_e15)) {
        local_2 = x == 0u;
    } else {
        local_2 = true;
    }
    bool _e22 = local_2;
    if (_e22) {
        return 0u;
    }
    if (!((x == 2139095040u))) {
        local_3 = scale == 0u;
    } else {
        local_3 = true;
    }
    bool _e31 = local_3;
    if (!(_e31)) {
        local_4 = (x >> 23u) > (metal::max(scale >> 23u, 1u) + 8u);
    } else {
        local_4 = true;
    }
    bool _e45 = local_4;
    if (_e45) {
        return 127u;
    }
    if ((scale >> 23u) < 60u) {
        float _e53 = raised(x);
        float _e54 = raised(scale);
        quotient = _e53 / _e54;
    } else {
        quotient = as_type<float>(x) / as_type<float>(scale);
    }
    float _e59 = quotient;
    return naga_f2u32(metal::min(metal::rint(_e59), 127.0));
}

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

float a_at(
    uint i_2,
    device type_4 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_2, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_2, A_DTYPE);
    return _e7;
}

float b_at(
    uint i_3,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_3, B_DTYPE);
    return _e7;
}

uint code(
    uint i_4,
    uint j,
    device type_4 const& a,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e2 = a_at(i_4, a, _buffer_sizes);
    uint x_1 = as_type<uint>(_e2);
    float _e4 = b_at(j, b, _buffer_sizes);
    uint scale_1 = as_type<uint>(_e4);
    uint _e10 = magnitude_of_code(x_1 & 2147483647u, scale_1 & 2147483647u);
    return ((((x_1 ^ scale_1) >> 31u) == 1u) ? (0u - _e10) : _e10) & 255u;
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
    uint x_2 = y / dims_1.y;
    return metal::uint4(x_2, y - (x_2 * dims_1.y), z - (y * dims_1.z), i_5 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put_bits(
    uint i_6,
    uint bits,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint position_1 = (i_6 & 3u) * 8u;
    uint _e25 = metal::atomic_fetch_and_explicit(&out[i_6 >> SHIFT], ~((255u << position_1)), metal::memory_order_relaxed);
    uint _e31 = metal::atomic_fetch_or_explicit(&out[i_6 >> SHIFT], bits << position_1, metal::memory_order_relaxed);
    return;
}

void put_word(
    uint i_7,
    uint word_1,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::atomic_store_explicit(&out[i_7 >> SHIFT], word_1, metal::memory_order_relaxed);
    return;
}

struct quantize_rowsInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void quantize_rows(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_4 const& a [[user(fake0)]]
, device type_4 const& b [[user(fake0)]]
, device type_7& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first = ((_e3 * WORKGROUP) + lane) * PER;
    metal::uint4 dims_2 = params.dims;
    uint _e12 = count_of(dims_2);
    if (first >= _e12) {
        return;
    }
    metal::uint4 _e14 = unravel(first, dims_2);
    View _e17 = params.a;
    uint _e18 = position(_e17, _e14);
    View _e21 = params.b;
    uint _e22 = position(_e21, _e14);
    View _e25 = params.out;
    uint _e26 = position(_e25, _e14);
    uint _e27 = code(_e18, _e22, a, b, _buffer_sizes);
    if (true) {
        put_bits(_e26, _e27, out, _buffer_sizes);
        return;
    }
    uint a_step = params.a.strides.w;
    uint b_step = params.b.strides.w;
    uint _e44 = code(_e18 + a_step, _e22 + b_step, a, b, _buffer_sizes);
    uint _e54 = code(_e18 + (2u * a_step), _e22 + (2u * b_step), a, b, _buffer_sizes);
    uint _e64 = code(_e18 + (3u * a_step), _e22 + (3u * b_step), a, b, _buffer_sizes);
    put_word(_e26, ((_e27 | (_e44 << 8u)) | (_e54 << 16u)) | (_e64 << 24u), out, _buffer_sizes);
    return;
}
