// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size5;
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
};
typedef uint type_2[1];
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
struct type_7 {
    metal::uint2 inner[256];
};
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint MERGES = 0u;
constant uint A_DTYPE = 0u;

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
    uint x_1 = y / dims.y;
    return metal::uint4(x_1, y - (x_1 * dims.y), z - (y * dims.z), i_1 - (z * dims.w));
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

metal::uint2 better(
    metal::uint2 a,
    metal::uint2 b
) {
    bool local_1 = {};
    bool local_2 = {};
    if (!((a.x > b.x))) {
        if (a.x == b.x) {
            local_2 = a.y < b.y;
        } else {
            local_2 = false;
        }
        bool _e17 = local_2;
        local_1 = _e17;
    } else {
        local_1 = true;
    }
    bool _e19 = local_1;
    return _e19 ? a : b;
}

uint order_key(
    float x
) {
    uint bits = as_type<uint>(x);
    uint magnitude = bits & 2147483647u;
    if (magnitude > 2139095040u) {
        return 4294967295u;
    }
    if (magnitude == 0u) {
        return 2147483648u;
    }
    return (bits >= 2147483648u) ? ~(bits) : (bits | 2147483648u);
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
    device type_2 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a_1[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
}

metal::uint2 best_of_lanes(
    uint lane_2,
    uint log2_lanes,
    metal::uint2 value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_7& lane_best
) {
    metal::uint2 all = {};
    uint i_5 = 1u;
    uint step = {};
    if (log2_lanes == 8u) {
        uint unnamed = metal::simd_max(value.x);
        uint unnamed_1 = metal::simd_min((value.x == unnamed) ? value.y : 4294967295u);
        bool _e14 = leads_subgroup;
        if (_e14) {
            uint _e17 = own_subgroup;
            lane_best.inner[_e17] = metal::uint2(unnamed, unnamed_1);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::uint2 _e22 = lane_best.inner[0];
        all = _e22;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e36 = i_5;
                i_5 = _e36 + 1u;
            }
            loop_init = false;
            uint _e26 = i_5;
            uint _e28 = all_subgroups;
            if (_e26 < _e28) {
            } else {
                break;
            }
            {
                metal::uint2 _e30 = all;
                uint _e32 = i_5;
                metal::uint2 _e34 = lane_best.inner[_e32];
                metal::uint2 _e35 = better(_e30, _e34);
                all = _e35;
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::uint2 _e39 = all;
        return _e39;
    }
    lane_best.inner[lane_2] = value;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint lanes = 1u << log2_lanes;
    step = lanes >> 1u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e66 = step;
            step = _e66 >> 1u;
        }
        loop_init_1 = false;
        uint _e47 = step;
        if (_e47 > 0u) {
        } else {
            break;
        }
        {
            uint _e53 = step;
            if ((lane_2 & (lanes - 1u)) < _e53) {
                metal::uint2 _e59 = lane_best.inner[lane_2];
                uint _e61 = step;
                metal::uint2 _e64 = lane_best.inner[lane_2 + _e61];
                metal::uint2 _e65 = better(_e59, _e64);
                lane_best.inner[lane_2] = _e65;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::uint2 all_1 = lane_best.inner[lane_2 & ~((lanes - 1u))];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return all_1;
}

struct argmaxInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void argmax(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, device type_2& indices [[user(fake0)]]
, device type_2 const& a_1 [[user(fake0)]]
, threadgroup type_7& lane_best
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    metal::uint2 own = metal::uint2(0u, 4294967295u);
    uint i = {};
    bool local = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_1 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Chunk _e10 = chunk_of(rows_1, _e9, lane);
    View _e13 = params.a;
    uint _e15 = position(_e13, _e10.at);
    uint stride = params.a.strides.w;
    i = _e10.first + _e10.lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e60 = i;
            i = _e60 + _e10.lanes;
        }
        loop_init_2 = false;
        uint _e29 = i;
        if (_e29 < _e10.last) {
        } else {
            break;
        }
        {
            uint _e32 = i;
            uint at_1 = _e15 + (_e32 * stride);
            if (true) {
                metal::uint2 _e39 = own;
                float _e40 = a_at(at_1, a_1, _buffer_sizes);
                uint _e41 = order_key(_e40);
                uint _e42 = i;
                metal::uint2 _e44 = better(_e39, metal::uint2(_e41, _e42));
                own = _e44;
            } else {
                metal::uint2 _e45 = own;
                uint _e50 = a_1[2u * at_1];
                uint _e57 = a_1[(2u * at_1) + 1u];
                metal::uint2 _e59 = better(_e45, metal::uint2(_e50, _e57));
                own = _e59;
            }
        }
    }
    metal::uint2 _e64 = own;
    metal::uint2 _e65 = best_of_lanes(lane, rows_1.log2_lanes, _e64, own_subgroup, all_subgroups, leads_subgroup, lane_best);
    if (_e10.inside) {
        local = _e10.lane == 0u;
    } else {
        local = false;
    }
    bool _e73 = local;
    if (_e73) {
        if (rows_1.chunks == 1u) {
            View _e80 = params.out;
            uint _e82 = position(_e80, _e10.at);
            indices[_e82] = _e65.y;
            return;
        } else {
            indices[2u * _e10.index] = _e65.x;
            indices[(2u * _e10.index) + 1u] = _e65.y;
            return;
        }
    } else {
        return;
    }
}
