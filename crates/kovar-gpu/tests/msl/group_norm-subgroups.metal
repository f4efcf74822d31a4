// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size4;
    uint size6;
    uint size7;
    uint size8;
    uint size9;
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
constant uint D_DTYPE = 0u;
constant uint PER = 1u;
constant uint B_DTYPE = 0u;
constant uint C_DTYPE = 0u;

Cursor cursor_at(
    uint i_3,
    constant Params& params
) {
    uint _e3 = params.channel_len;
    uint channel = i_3 / _e3;
    uint _e7 = params.channel_len;
    return Cursor {channel, i_3 - (channel * _e7)};
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
    uint i_4,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_4);
    }
    uint z = i_4 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_4 - (z * dims.w));
    }
    uint y_1 = z / dims.z;
    uint x_1 = y_1 / dims.y;
    return metal::uint4(x_1, y_1 - (x_1 * dims.y), z - (y_1 * dims.z), i_4 - (z * dims.w));
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
    uint i_5,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_5 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_6,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_6 : (i_6 >> 1u);
}

float a_at(
    uint i_7,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_7, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_7, A_DTYPE);
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
    uint i_8 = 0u;
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
                uint _e27 = i_8;
                i_8 = _e27 + 1u;
            }
            loop_init = false;
            uint _e17 = i_8;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all;
                uint _e23 = i_8;
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
    uint i_9,
    float value_2,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_9] = as_type<uint>(value_2);
    return;
}

float d_at(
    uint i_10,
    device type_5 const& d,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_10, D_DTYPE);
    uint _e5 = d[_e3];
    float _e7 = decode(_e5, i_10, D_DTYPE);
    return _e7;
}

float b_at(
    uint i_11,
    device type_5 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_11, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_11, B_DTYPE);
    return _e7;
}

float c_at(
    uint i_12,
    device type_5 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_12, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_12, C_DTYPE);
    return _e7;
}

float affine(
    Affine norm,
    uint i_13,
    float x,
    device type_5 const& b,
    device type_5 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    float y = {};
    y = x;
    if (norm.weighted != 0u) {
        float _e7 = y;
        float _e15 = b_at(norm.weight.offset + (i_13 * norm.weight.strides.w), b, _buffer_sizes);
        y = _e7 * _e15;
    }
    if (norm.biased != 0u) {
        float _e20 = y;
        float _e28 = c_at(norm.bias.offset + (i_13 * norm.bias.strides.w), c, _buffer_sizes);
        y = _e20 + _e28;
    }
    float _e30 = y;
    return _e30;
}

void put_pair(
    uint i_14,
    float first,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_14] = as_type<uint>(first);
    out[i_14 + 1u] = as_type<uint>(second);
    return;
}

struct group_normInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void group_norm(
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
, device type_5 const& d [[user(fake0)]]
, device type_5 const& b [[user(fake0)]]
, device type_5 const& c [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    float sum = 0.0;
    uint i = {};
    metal::float2 sums = metal::float2(0.0);
    uint i_1 = {};
    Cursor cursor = {};
    uint i_2 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    uint _e6 = flat_workgroup(workgroup, workgroups);
    uint _e9 = params.count;
    uint _e12 = params.chunks;
    bool inside = _e6 < (_e9 * _e12);
    uint _e19 = params.chunks;
    uint group_1 = (inside ? _e6 : 0u) / _e19;
    uint _e23 = params.group_len;
    float n = static_cast<float>(_e23);
    uint _e29 = params.chunks;
    uint moments = (4u * group_1) * _e29;
    i = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e54 = i;
            i = _e54 + 256u;
        }
        loop_init_2 = false;
        uint _e34 = i;
        uint _e37 = params.chunks;
        if (_e34 < _e37) {
        } else {
            break;
        }
        {
            float _e39 = sum;
            uint _e41 = i;
            float _e44 = d_at(moments + (4u * _e41), d, _buffer_sizes);
            uint _e46 = i;
            float _e51 = d_at((moments + (4u * _e46)) + 3u, d, _buffer_sizes);
            sum = _e39 + (_e44 * _e51);
        }
    }
    float _e58 = sum;
    float _e59 = sum_lanes(lane, 8u, _e58, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float center = _e59 / n;
    i_1 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e95 = i_1;
            i_1 = _e95 + 256u;
        }
        loop_init_3 = false;
        uint _e65 = i_1;
        uint _e68 = params.chunks;
        if (_e65 < _e68) {
        } else {
            break;
        }
        {
            uint _e71 = i_1;
            uint at_1 = moments + (4u * _e71);
            float _e74 = d_at(at_1, d, _buffer_sizes);
            float away = _e74 - center;
            float _e78 = d_at(at_1 + 1u, d, _buffer_sizes);
            float _e81 = d_at(at_1 + 3u, d, _buffer_sizes);
            float all_2 = away * _e81;
            metal::float2 _e83 = sums;
            float _e87 = d_at(at_1 + 2u, d, _buffer_sizes);
            sums = _e83 + metal::float2(all_2 + _e78, _e87 + (away * (all_2 + (2.0 * _e78))));
        }
    }
    metal::float2 _e99 = sums;
    metal::float2 _e100 = sum_pairs(lane, 8u, _e99, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float shift = _e100.x / n;
    float _e113 = params.norm.eps;
    float factor = 1.0 / metal::sqrt((metal::max(_e100.y - (_e100.x * shift), 0.0) / n) + _e113);
    if (!(inside)) {
        return;
    }
    metal::uint4 _e119 = coordinates(group_1, params);
    View _e122 = params.a;
    uint _e123 = position(_e122, _e119);
    View _e126 = params.out;
    uint _e127 = position(_e126, _e119);
    uint _e130 = params.first_channel;
    uint _e134 = params.channel_step;
    uint first_channel = _e130 + (_e119.z * _e134);
    uint _e139 = params.chunks;
    uint _e144 = params.chunk;
    uint first_1 = ((_e6 - (group_1 * _e139)) * _e144) + (lane * PER);
    uint _e154 = params.chunk;
    uint _e158 = params.group_len;
    uint last = metal::min((first_1 - (lane * PER)) + _e154, _e158);
    Cursor _e160 = cursor_at(first_1, params);
    cursor = _e160;
    i_2 = first_1;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e217 = i_2;
            i_2 = _e217 + 256u;
        }
        loop_init_4 = false;
        uint _e163 = i_2;
        if (_e163 < last) {
        } else {
            break;
        }
        {
            Cursor _e165 = cursor;
            View _e168 = params.a;
            metal::uint4 _e171 = params.a_steps;
            uint _e172 = distance(_e165, _e168, _e171, params);
            uint source = _e123 + _e172;
            Cursor _e174 = cursor;
            View _e177 = params.out;
            metal::uint4 _e180 = params.out_steps;
            uint _e181 = distance(_e174, _e177, _e180, params);
            uint place = _e127 + _e181;
            uint _e184 = cursor.channel;
            uint channel_1 = first_channel + _e184;
            Affine _e188 = params.norm;
            float _e189 = a_at(source, a, _buffer_sizes);
            float _e193 = affine(_e188, channel_1, ((_e189 - center) - shift) * factor, b, c, _buffer_sizes);
            if (true) {
                put(place, _e193, out, _buffer_sizes);
            } else {
                uint _e201 = params.a_steps.w;
                float _e203 = a_at(source + _e201, a, _buffer_sizes);
                float next = ((_e203 - center) - shift) * factor;
                Affine _e209 = params.norm;
                float _e210 = affine(_e209, channel_1, next, b, c, _buffer_sizes);
                put_pair(place, _e193, _e210, out, _buffer_sizes);
            }
            Cursor _e211 = cursor;
            Cursor _e216 = moved(_e211, 256u, params);
            cursor = _e216;
        }
    }
    return;
}
