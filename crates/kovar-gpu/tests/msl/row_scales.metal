// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
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
    metal::uint4 columns;
};
struct type_2 {
    uint inner[256];
};
typedef uint type_5[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint LANES = 32u;
constant uint A_DTYPE = 0u;

float scale_of(
    uint magnitude
) {
    uint units = {};
    if (magnitude >= 67108864u) {
        return as_type<float>(magnitude) / 127.0;
    }
    uint exponent = magnitude >> 23u;
    units = magnitude;
    if (exponent > 0u) {
        units = ((magnitude & 8388607u) | 8388608u) << (exponent - 1u);
    }
    uint _e18 = units;
    uint quotient = _e18 / 127u;
    uint _e23 = units;
    return as_type<float>(quotient + (((_e23 - (quotient * 127u)) > 63u) ? 1u : 0u));
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
    uint y = z / dims_1.z;
    uint x = y / dims_1.y;
    return metal::uint4(x, y - (x * dims_1.y), z - (y * dims_1.z), i_1 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
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
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
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

struct row_scalesInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void row_scales(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, threadgroup type_2& greatest
, device type_5 const& a [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    metal::uint4 at = metal::uint4(0u);
    uint most = 0u;
    uint i = {};
    uint step = 16u;
    bool local = {};
    metal::uint4 dims_2 = params.dims;
    uint _e6 = flat_workgroup(workgroup, workgroups);
    uint row = (_e6 * 8u) + (lane / LANES);
    uint _e15 = count_of(dims_2);
    bool inside = row < _e15;
    uint first = lane % LANES;
    if (inside) {
        metal::uint4 _e24 = unravel(row, dims_2);
        at = _e24;
        View _e27 = params.a;
        metal::uint4 _e28 = at;
        uint _e29 = position(_e27, _e28);
        i = first;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e50 = i;
                i = _e50 + LANES;
            }
            loop_init = false;
            uint _e31 = i;
            uint _e35 = params.columns.x;
            if (_e31 < _e35) {
            } else {
                break;
            }
            {
                uint _e37 = most;
                uint _e38 = i;
                uint _e42 = params.columns.y;
                float _e45 = a_at(_e29 + (_e38 * _e42), a, _buffer_sizes);
                most = metal::max(_e37, as_type<uint>(_e45) & 2147483647u);
            }
        }
    }
    uint _e55 = most;
    greatest.inner[lane] = _e55;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e77 = step;
            step = _e77 / 2u;
        }
        loop_init_1 = false;
        uint _e61 = step;
        if (_e61 > 0u) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e64 = step;
            if (first < _e64) {
                uint _e70 = greatest.inner[lane];
                uint _e72 = step;
                uint _e75 = greatest.inner[lane + _e72];
                greatest.inner[lane] = metal::max(_e70, _e75);
            }
        }
    }
    if (inside) {
        local = first == 0u;
    } else {
        local = false;
    }
    bool _e85 = local;
    if (_e85) {
        uint magnitude_1 = greatest.inner[lane];
        View _e91 = params.out;
        metal::uint4 _e92 = at;
        uint _e93 = position(_e91, _e92);
        float _e94 = scale_of(magnitude_1);
        put(_e93, _e94, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}
