// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size5;
    uint size6;
    uint size7;
    uint size8;
};

struct Rows {
    metal::uint4 dims;
    uint log2_lanes;
    uint chunk;
    uint chunks;
    uint count;
};
struct View {
    metal::uint4 strides;
    uint offset;
    char _pad2[12];
};
struct Affine {
    View weight;
    View bias;
    uint weighted;
    uint biased;
    float eps;
    char _pad5[4];
};
struct Params {
    Rows rows;
    View out;
    View a;
    Affine norm;
};
struct Chunk {
    metal::uint4 at;
    uint row;
    uint index;
    uint first;
    uint last;
    bool inside;
    char _pad6[3];
    uint lane;
    uint lanes;
    char _pad8[4];
};
struct type_6 {
    metal::float2 inner[256];
};
typedef uint type_7[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint A_DTYPE = 0u;
constant uint PER = 1u;
constant uint B_DTYPE = 0u;
constant uint C_DTYPE = 0u;

void enter_subgroups(
    uint id,
    uint count,
    uint invocation_1,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup
) {
    own_subgroup = id;
    all_subgroups = count;
    leads_subgroup = invocation_1 == 0u;
    return;
}

metal::uint4 unravel(
    uint i_2,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_2);
    }
    uint z = i_2 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_2 - (z * dims.w));
    }
    uint y_1 = z / dims.z;
    uint x_1 = y_1 / dims.y;
    return metal::uint4(x_1, y_1 - (x_1 * dims.y), z - (y_1 * dims.z), i_2 - (z * dims.w));
}

Chunk chunk_of(
    Rows rows,
    uint workgroup_1,
    uint lane_1
) {
    Chunk chunk = {};
    uint index = (workgroup_1 << (8u - rows.log2_lanes)) + (lane_1 >> rows.log2_lanes);
    chunk.inside = index < (rows.count * rows.chunks);
    bool _e19 = chunk.inside;
    chunk.index = _e19 ? index : 0u;
    uint _e23 = chunk.index;
    chunk.row = _e23 / rows.chunks;
    uint _e27 = chunk.row;
    metal::uint4 _e32 = unravel(_e27, metal::uint4(1u, rows.dims.xyz));
    chunk.at = metal::uint4(_e32.yzw, 0u);
    uint _e39 = chunk.index;
    uint _e41 = chunk.row;
    chunk.first = (_e39 - (_e41 * rows.chunks)) * rows.chunk;
    uint _e49 = chunk.first;
    uint _e51 = chunk.first;
    bool _e58 = chunk.inside;
    chunk.last = _e58 ? metal::min(_e51 + rows.chunk, rows.dims.w) : _e49;
    chunk.lanes = 1u << rows.log2_lanes;
    uint _e66 = chunk.lanes;
    chunk.lane = lane_1 & (_e66 - 1u);
    Chunk _e70 = chunk;
    return _e70;
}

uint flat_workgroup(
    metal::uint3 id_1,
    metal::uint3 count_1
) {
    return (id_1.y * count_1.x) + id_1.x;
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

metal::float2 sum_pairs(
    uint lane_2,
    uint log2_lanes,
    metal::float2 value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_6& lane_sums
) {
    metal::float2 all = metal::float2(0.0);
    uint i_3 = 0u;
    uint step = {};
    if (log2_lanes == 8u) {
        metal::float2 unnamed = metal::simd_sum(value);
        bool _e7 = leads_subgroup;
        if (_e7) {
            uint _e10 = own_subgroup;
            lane_sums.inner[_e10] = unnamed;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e27 = i_3;
                i_3 = _e27 + 1u;
            }
            loop_init = false;
            uint _e17 = i_3;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all;
                uint _e23 = i_3;
                metal::float2 _e25 = lane_sums.inner[_e23];
                all = _e21 + _e25;
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float2 _e30 = all;
        return _e30;
    }
    lane_sums.inner[lane_2] = value;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint lanes = 1u << log2_lanes;
    step = lanes >> 1u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e55 = step;
            step = _e55 >> 1u;
        }
        loop_init_1 = false;
        uint _e38 = step;
        if (_e38 > 0u) {
        } else {
            break;
        }
        {
            uint _e44 = step;
            if ((lane_2 & (lanes - 1u)) < _e44) {
                metal::float2 _e48 = lane_sums.inner[lane_2];
                uint _e50 = step;
                metal::float2 _e53 = lane_sums.inner[lane_2 + _e50];
                lane_sums.inner[lane_2] = _e48 + _e53;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::float2 all_1 = lane_sums.inner[lane_2 & ~((lanes - 1u))];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return all_1;
}

float sum_lanes(
    uint lane_3,
    uint log2_lanes_1,
    float value_1,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_6& lane_sums
) {
    metal::float2 _e5 = sum_pairs(lane_3, log2_lanes_1, metal::float2(value_1, 0.0), own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e5.x;
}

float decode(
    uint word,
    uint i_4,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_4 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_5,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_5 : (i_5 >> 1u);
}

float a_at(
    uint i_6,
    device type_7 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_6, A_DTYPE);
    return _e7;
}

float sum_of(
    Chunk chunk_1,
    uint start,
    uint stride,
    device type_7 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    float sum = 0.0;
    uint i_7 = {};
    i_7 = chunk_1.first + chunk_1.lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e18 = i_7;
            i_7 = _e18 + chunk_1.lanes;
        }
        loop_init_2 = false;
        uint _e9 = i_7;
        if (_e9 < chunk_1.last) {
        } else {
            break;
        }
        {
            float _e12 = sum;
            uint _e13 = i_7;
            float _e16 = a_at(start + (_e13 * stride), a, _buffer_sizes);
            sum = _e12 + _e16;
        }
    }
    float _e21 = sum;
    return _e21;
}

float b_at(
    uint i_8,
    device type_7 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_8, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_8, B_DTYPE);
    return _e7;
}

float c_at(
    uint i_9,
    device type_7 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_9, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_9, C_DTYPE);
    return _e7;
}

float affine(
    Affine norm,
    uint i_10,
    float x,
    device type_7 const& b,
    device type_7 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    float y = {};
    y = x;
    if (norm.weighted != 0u) {
        float _e7 = y;
        float _e15 = b_at(norm.weight.offset + (i_10 * norm.weight.strides.w), b, _buffer_sizes);
        y = _e7 * _e15;
    }
    if (norm.biased != 0u) {
        float _e20 = y;
        float _e28 = c_at(norm.bias.offset + (i_10 * norm.bias.strides.w), c, _buffer_sizes);
        y = _e20 + _e28;
    }
    float _e30 = y;
    return _e30;
}

void put(
    uint i_11,
    float value_2,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_11] = as_type<uint>(value_2);
    return;
}

void put_pair(
    uint i_12,
    float first,
    float second,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_12] = as_type<uint>(first);
    out[i_12 + 1u] = as_type<uint>(second);
    return;
}

struct layer_normInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void layer_norm(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, threadgroup type_6& lane_sums
, device type_7 const& a [[user(fake0)]]
, device type_7 const& b [[user(fake0)]]
, device type_7 const& c [[user(fake0)]]
, device type_7& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    metal::float2 sums = metal::float2(0.0);
    uint i = {};
    uint i_1 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_1 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Chunk _e10 = chunk_of(rows_1, _e9, lane);
    View _e13 = params.a;
    uint _e15 = position(_e13, _e10.at);
    uint stride_1 = params.a.strides.w;
    float n = static_cast<float>(rows_1.dims.w);
    float _e25 = sum_of(_e10, _e15, stride_1, a, _buffer_sizes);
    float _e26 = sum_lanes(lane, rows_1.log2_lanes, _e25, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float center = _e26 / n;
    i = _e10.first + _e10.lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e47 = i;
            i = _e47 + _e10.lanes;
        }
        loop_init_3 = false;
        uint _e35 = i;
        if (_e35 < _e10.last) {
        } else {
            break;
        }
        {
            uint _e38 = i;
            float _e41 = a_at(_e15 + (_e38 * stride_1), a, _buffer_sizes);
            float x_2 = _e41 - center;
            metal::float2 _e43 = sums;
            sums = _e43 + metal::float2(x_2, x_2 * x_2);
        }
    }
    metal::float2 _e51 = sums;
    metal::float2 _e52 = sum_pairs(lane, rows_1.log2_lanes, _e51, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float shift = _e52.x / n;
    float _e65 = params.norm.eps;
    float factor = 1.0 / metal::sqrt((metal::max(_e52.y - (_e52.x * shift), 0.0) / n) + _e65);
    View _e72 = params.out;
    uint _e74 = position(_e72, _e10.at);
    uint step_1 = params.out.strides.w;
    i_1 = _e10.first + (_e10.lane * PER);
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e126 = i_1;
            i_1 = _e126 + (_e10.lanes * PER);
        }
        loop_init_4 = false;
        uint _e86 = i_1;
        if (_e86 < _e10.last) {
        } else {
            break;
        }
        {
            Affine _e91 = params.norm;
            uint _e92 = i_1;
            uint _e93 = i_1;
            float _e96 = a_at(_e15 + (_e93 * stride_1), a, _buffer_sizes);
            float _e100 = affine(_e91, _e92, ((_e96 - center) - shift) * factor, b, c, _buffer_sizes);
            if (true) {
                uint _e105 = i_1;
                put(_e74 + (_e105 * step_1), _e100, out, _buffer_sizes);
            } else {
                uint _e108 = i_1;
                float _e113 = a_at(_e15 + ((_e108 + 1u) * stride_1), a, _buffer_sizes);
                float next = ((_e113 - center) - shift) * factor;
                uint _e117 = i_1;
                Affine _e121 = params.norm;
                uint _e122 = i_1;
                float _e125 = affine(_e121, _e122 + 1u, next, b, c, _buffer_sizes);
                put_pair(_e74 + _e117, _e100, _e125, out, _buffer_sizes);
            }
        }
    }
    return;
}
