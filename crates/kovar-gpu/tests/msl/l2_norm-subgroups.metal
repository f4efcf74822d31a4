// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size4;
    uint size5;
    uint size7;
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
struct Params {
    Rows rows;
    View out;
    View a;
    float eps;
    char _pad4[12];
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
typedef uint type_5[1];
struct type_7 {
    metal::float2 inner[256];
};
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint A_DTYPE = 0u;
constant uint B_DTYPE = 0u;
constant uint PER = 1u;

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
    uint i_1,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_1);
    }
    uint z = i_1 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_1 - (z * dims.w));
    }
    uint y = z / dims.z;
    uint x = y / dims.y;
    return metal::uint4(x, y - (x * dims.y), z - (y * dims.z), i_1 - (z * dims.w));
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

float sum_of_squares(
    Chunk chunk_1,
    uint start,
    uint stride,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    float sum = 0.0;
    uint i_5 = {};
    i_5 = chunk_1.first + chunk_1.lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e19 = i_5;
            i_5 = _e19 + chunk_1.lanes;
        }
        loop_init = false;
        uint _e9 = i_5;
        if (_e9 < chunk_1.last) {
        } else {
            break;
        }
        {
            uint _e12 = i_5;
            float _e15 = a_at(start + (_e12 * stride), a, _buffer_sizes);
            float _e16 = sum;
            sum = _e16 + (_e15 * _e15);
        }
    }
    float _e22 = sum;
    return _e22;
}

float b_at(
    uint i_6,
    device type_5 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_6, B_DTYPE);
    return _e7;
}

metal::float2 sum_pairs(
    uint lane_2,
    uint log2_lanes,
    metal::float2 value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_7& lane_sums
) {
    metal::float2 all = metal::float2(0.0);
    uint i_7 = 0u;
    uint step = {};
    if (log2_lanes == 8u) {
        metal::float2 unnamed = metal::simd_sum(value);
        bool _e7 = leads_subgroup;
        if (_e7) {
            uint _e10 = own_subgroup;
            lane_sums.inner[_e10] = unnamed;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e27 = i_7;
                i_7 = _e27 + 1u;
            }
            loop_init_1 = false;
            uint _e17 = i_7;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all;
                uint _e23 = i_7;
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
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e55 = step;
            step = _e55 >> 1u;
        }
        loop_init_2 = false;
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
    threadgroup type_7& lane_sums
) {
    metal::float2 _e5 = sum_pairs(lane_3, log2_lanes_1, metal::float2(value_1, 0.0), own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e5.x;
}

float row_squares(
    Rows rows_1,
    Chunk chunk_2,
    uint start_1,
    uint stride_1,
    uint lane_4,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    device type_5 const& a,
    device type_5 const& b,
    threadgroup type_7& lane_sums,
    constant _mslBufferSizes& _buffer_sizes
) {
    float sum_1 = 0.0;
    uint i_8 = {};
    if (rows_1.chunks == 1u) {
        float _e10 = sum_of_squares(chunk_2, start_1, stride_1, a, _buffer_sizes);
        sum_1 = _e10;
    } else {
        i_8 = chunk_2.lane;
        bool loop_init_3 = true;
        while(true) {
            if (!loop_init_3) {
                uint _e24 = i_8;
                i_8 = _e24 + chunk_2.lanes;
            }
            loop_init_3 = false;
            uint _e13 = i_8;
            if (_e13 < rows_1.chunks) {
            } else {
                break;
            }
            {
                float _e16 = sum_1;
                uint _e20 = i_8;
                float _e22 = b_at((chunk_2.row * rows_1.chunks) + _e20, b, _buffer_sizes);
                sum_1 = _e16 + _e22;
            }
        }
    }
    float _e28 = sum_1;
    float _e29 = sum_lanes(lane_4, rows_1.log2_lanes, _e28, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e29;
}

void put(
    uint i_9,
    float value_2,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_9] = as_type<uint>(value_2);
    return;
}

void put_pair(
    uint i_10,
    float first,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_10] = as_type<uint>(first);
    out[i_10 + 1u] = as_type<uint>(second);
    return;
}

struct l2_normInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void l2_norm(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, device type_5 const& b [[user(fake0)]]
, threadgroup type_7& lane_sums
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    uint i = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_2 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Chunk _e10 = chunk_of(rows_2, _e9, lane);
    View _e13 = params.a;
    uint _e15 = position(_e13, _e10.at);
    uint stride_2 = params.a.strides.w;
    float _e21 = row_squares(rows_2, _e10, _e15, stride_2, lane, own_subgroup, all_subgroups, leads_subgroup, a, b, lane_sums, _buffer_sizes);
    float _e25 = params.eps;
    float factor = 1.0 / metal::max(metal::sqrt(_e21), _e25);
    View _e31 = params.out;
    uint _e33 = position(_e31, _e10.at);
    uint step_1 = params.out.strides.w;
    i = _e10.first + (_e10.lane * PER);
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e69 = i;
            i = _e69 + (_e10.lanes * PER);
        }
        loop_init_4 = false;
        uint _e45 = i;
        if (_e45 < _e10.last) {
        } else {
            break;
        }
        {
            uint _e48 = i;
            float _e51 = a_at(_e15 + (_e48 * stride_2), a, _buffer_sizes);
            float y_1 = _e51 * factor;
            if (true) {
                uint _e57 = i;
                put(_e33 + (_e57 * step_1), y_1, out, _buffer_sizes);
            } else {
                uint _e60 = i;
                uint _e62 = i;
                float _e67 = a_at(_e15 + ((_e62 + 1u) * stride_2), a, _buffer_sizes);
                put_pair(_e33 + _e60, y_1, _e67 * factor, out, _buffer_sizes);
            }
        }
    }
    return;
}
