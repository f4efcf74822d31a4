// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size4;
    uint size6;
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
    metal::uint4 groups;
    metal::uint4 sizes;
    View out;
    View a;
    metal::uint4 out_steps;
    metal::uint4 a_steps;
    uint channel_len;
    uint group_len;
    uint chunk;
    uint chunks;
    uint count;
    uint first_channel;
    uint channel_step;
    char _pad13[4];
    Affine norm;
};
struct Cursor {
    uint channel;
    uint within;
};
typedef uint type_5[1];
struct type_7 {
    metal::float2 inner[256];
};
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint A_DTYPE = 0u;

Cursor cursor_at(
    uint i_2,
    constant Params& params
) {
    uint _e3 = params.channel_len;
    uint channel = i_2 / _e3;
    uint _e7 = params.channel_len;
    return Cursor {channel, i_2 - (channel * _e7)};
}

Cursor moved(
    Cursor cursor_1,
    uint step,
    constant Params& params
) {
    uint within = cursor_1.within + step;
    uint _e6 = params.channel_len;
    if (within < _e6) {
        return Cursor {cursor_1.channel, within};
    }
    uint _e12 = params.channel_len;
    uint channels = within / _e12;
    uint _e18 = params.channel_len;
    return Cursor {cursor_1.channel + channels, within - (channels * _e18)};
}

metal::uint4 unravel(
    uint i_3,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_3);
    }
    uint z = i_3 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_3 - (z * dims.w));
    }
    uint y = z / dims.z;
    uint x = y / dims.y;
    return metal::uint4(x, y - (x * dims.y), z - (y * dims.z), i_3 - (z * dims.w));
}

uint distance(
    Cursor cursor_2,
    View view,
    metal::uint4 steps,
    constant Params& params
) {
    uint _e6 = params.sizes.w;
    uint _e9 = params.channel_len;
    if (_e6 == _e9) {
        return (cursor_2.channel * view.strides.w) + (cursor_2.within * steps.w);
    }
    metal::uint4 _e22 = params.sizes;
    metal::uint4 _e23 = unravel(cursor_2.within, _e22);
    metal::uint4 offsets = _e23 * steps;
    return ((((cursor_2.channel * view.strides.w) + offsets.x) + offsets.y) + offsets.z) + offsets.w;
}

metal::uint4 coordinates(
    uint group,
    constant Params& params
) {
    metal::uint4 _e4 = params.groups;
    metal::uint4 _e7 = unravel(group, metal::uint4(1u, _e4.xyz));
    return metal::uint4(_e7.yzw, 0u);
}

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

uint flat_workgroup(
    metal::uint3 id_1,
    metal::uint3 count_1
) {
    return (id_1.y * count_1.x) + id_1.x;
}

uint position(
    View view_1,
    metal::uint4 at
) {
    metal::uint4 steps_1 = view_1.strides * at;
    return (((view_1.offset + steps_1.x) + steps_1.y) + steps_1.z) + steps_1.w;
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
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_6, A_DTYPE);
    return _e7;
}

metal::float2 sum_pairs(
    uint lane_1,
    uint log2_lanes,
    metal::float2 value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_7& lane_sums
) {
    metal::float2 all = metal::float2(0.0);
    uint i_7 = 0u;
    uint step_1 = {};
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
                uint _e27 = i_7;
                i_7 = _e27 + 1u;
            }
            loop_init = false;
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
    lane_sums.inner[lane_1] = value;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint lanes = 1u << log2_lanes;
    step_1 = lanes >> 1u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e55 = step_1;
            step_1 = _e55 >> 1u;
        }
        loop_init_1 = false;
        uint _e38 = step_1;
        if (_e38 > 0u) {
        } else {
            break;
        }
        {
            uint _e44 = step_1;
            if ((lane_1 & (lanes - 1u)) < _e44) {
                metal::float2 _e48 = lane_sums.inner[lane_1];
                uint _e50 = step_1;
                metal::float2 _e53 = lane_sums.inner[lane_1 + _e50];
                lane_sums.inner[lane_1] = _e48 + _e53;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::float2 all_1 = lane_sums.inner[lane_1 & ~((lanes - 1u))];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return all_1;
}

float sum_lanes(
    uint lane_2,
    uint log2_lanes_1,
    float value_1,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_7& lane_sums
) {
    metal::float2 _e5 = sum_pairs(lane_2, log2_lanes_1, metal::float2(value_1, 0.0), own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e5.x;
}

void put(
    uint i_8,
    float value_2,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_8] = as_type<uint>(value_2);
    return;
}

struct group_norm_momentsInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void group_norm_moments(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, threadgroup type_7& lane_sums
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    float sum = 0.0;
    Cursor cursor = {};
    uint i = {};
    metal::float2 sums = metal::float2(0.0);
    uint i_1 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    uint _e6 = flat_workgroup(workgroup, workgroups);
    uint _e9 = params.count;
    uint _e12 = params.chunks;
    uint number = metal::min(_e6, (_e9 * _e12) - 1u);
    uint _e19 = params.chunks;
    uint group_1 = number / _e19;
    uint _e23 = params.chunks;
    uint _e28 = params.chunk;
    uint first = (number - (group_1 * _e23)) * _e28;
    uint _e32 = params.chunk;
    uint _e36 = params.group_len;
    uint last = metal::min(first + _e32, _e36);
    View _e40 = params.a;
    metal::uint4 _e41 = coordinates(group_1, params);
    uint _e42 = position(_e40, _e41);
    Cursor _e46 = cursor_at(first + lane, params);
    cursor = _e46;
    i = first + lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e67 = i;
            i = _e67 + 256u;
        }
        loop_init_2 = false;
        uint _e50 = i;
        if (_e50 < last) {
        } else {
            break;
        }
        {
            float _e52 = sum;
            Cursor _e53 = cursor;
            View _e56 = params.a;
            metal::uint4 _e59 = params.a_steps;
            uint _e60 = distance(_e53, _e56, _e59, params);
            float _e62 = a_at(_e42 + _e60, a, _buffer_sizes);
            sum = _e52 + _e62;
            Cursor _e64 = cursor;
            Cursor _e66 = moved(_e64, 256u, params);
            cursor = _e66;
        }
    }
    float n = static_cast<float>(last - first);
    float _e73 = sum;
    float _e74 = sum_lanes(lane, 8u, _e73, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float center = _e74 / n;
    Cursor _e80 = cursor_at(first + lane, params);
    cursor = _e80;
    i_1 = first + lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e103 = i_1;
            i_1 = _e103 + 256u;
        }
        loop_init_3 = false;
        uint _e83 = i_1;
        if (_e83 < last) {
        } else {
            break;
        }
        {
            Cursor _e85 = cursor;
            View _e88 = params.a;
            metal::uint4 _e91 = params.a_steps;
            uint _e92 = distance(_e85, _e88, _e91, params);
            float _e94 = a_at(_e42 + _e92, a, _buffer_sizes);
            float x_1 = _e94 - center;
            metal::float2 _e96 = sums;
            sums = _e96 + metal::float2(x_1, x_1 * x_1);
            Cursor _e100 = cursor;
            Cursor _e102 = moved(_e100, 256u, params);
            cursor = _e102;
        }
    }
    metal::float2 _e107 = sums;
    metal::float2 _e108 = sum_pairs(lane, 8u, _e107, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    if (lane == 0u) {
        put(4u * number, center, out, _buffer_sizes);
        put((4u * number) + 1u, _e108.x, out, _buffer_sizes);
        put((4u * number) + 2u, _e108.y, out, _buffer_sizes);
        put((4u * number) + 3u, n, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}
