// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size8;
    uint size9;
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
    View b;
    float scale;
    uint masked;
    uint first_head;
    uint power;
    float slope_step;
    char _pad9[12];
};
typedef uint type_4[1];
struct Part {
    metal::uint4 at;
    uint row;
    uint number;
    uint first;
    uint last;
    bool inside;
    char _pad6[3];
    uint lane;
    uint lanes;
    char _pad8[4];
};
struct type_6 {
    float inner[256];
};
struct type_8 {
    metal::float2 inner[256];
};
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint PER = 1u;
constant uint A_DTYPE = 0u;
constant uint B_DTYPE = 1u;
constant uint C_DTYPE = 0u;

int naga_f2i32(float value) {
    return static_cast<int>(metal::clamp(value, -2147483600.0, 2147483500.0));
}

float power_of_2_(
    float x
) {
    float whole = metal::floor(x + 0.5);
    float t = (x - whole) * 0.6931472;
    float high = 0.041666668 + (t * (0.008333334 + (t * (0.0013888889 + (t * 0.0001984127)))));
    float p = 1.0 + (t * (1.0 + (t * (0.5 + (t * (0.16666667 + (t * high)))))));
    return p * as_type<float>(static_cast<uint>(as_type<int>(as_type<uint>(naga_f2i32(whole)) + as_type<uint>(127))) << 23u);
}

float slope(
    uint head,
    constant Params& params
) {
    uint _e3 = params.power;
    if (_e3 == 0u) {
        return 1.0;
    }
    uint _e9 = params.power;
    if (head < _e9) {
        float _e13 = params.slope_step;
        float _e19 = power_of_2_(-(_e13) * static_cast<float>(head + 1u));
        return _e19;
    }
    float _e22 = params.slope_step;
    uint _e28 = params.power;
    float _e35 = power_of_2_((-0.5 * _e22) * static_cast<float>((2u * (head - _e28)) + 1u));
    return _e35;
}

bool is_least(
    float x_1
) {
    return as_type<uint>(x_1) == 4286578688u;
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
    device type_4 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_7, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_7, A_DTYPE);
    return _e7;
}

float b_at(
    uint i_8,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_8, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_8, B_DTYPE);
    return _e7;
}

float score(
    uint source,
    uint at,
    float slope_1,
    constant Params& params,
    device type_4 const& a,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    float s = {};
    float _e3 = a_at(source, a, _buffer_sizes);
    float _e6 = params.scale;
    s = _e3 * _e6;
    uint _e11 = params.masked;
    if (_e11 != 0u) {
        float _e14 = b_at(at, b, _buffer_sizes);
        bool _e15 = is_least(_e14);
        if (_e15) {
            return -340282350000000000000000000000000000000.0;
        }
        float _e17 = s;
        s = metal::fma(slope_1, _e14, _e17);
    }
    float _e19 = s;
    float _e20 = s;
    bool _e21 = is_least(_e20);
    return _e21 ? -340282350000000000000000000000000000000.0 : _e19;
}

float weight(
    float score_1,
    float greatest
) {
    return (score_1 == -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(score_1 - greatest);
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

metal::uint4 unravel(
    uint i_9,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_9);
    }
    uint z = i_9 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_9 - (z * dims.w));
    }
    uint y = z / dims.z;
    uint x_2 = y / dims.y;
    return metal::uint4(x_2, y - (x_2 * dims.y), z - (y * dims.z), i_9 - (z * dims.w));
}

Part part_of(
    Rows rows,
    uint workgroup_1,
    uint lane_1
) {
    Part part = {};
    uint number = (workgroup_1 << (8u - rows.log2_lanes)) + (lane_1 >> rows.log2_lanes);
    part.inside = number < (rows.count * rows.chunks);
    bool _e19 = part.inside;
    part.number = _e19 ? number : 0u;
    uint _e23 = part.number;
    part.row = _e23 / rows.chunks;
    uint _e27 = part.row;
    metal::uint4 _e32 = unravel(_e27, metal::uint4(1u, rows.dims.xyz));
    part.at = metal::uint4(_e32.yzw, 0u);
    uint _e39 = part.number;
    uint _e41 = part.row;
    part.first = (_e39 - (_e41 * rows.chunks)) * rows.chunk;
    uint _e49 = part.first;
    uint _e51 = part.first;
    bool _e58 = part.inside;
    part.last = _e58 ? metal::min(_e51 + rows.chunk, rows.dims.w) : _e49;
    part.lanes = 1u << rows.log2_lanes;
    uint _e66 = part.lanes;
    part.lane = lane_1 & (_e66 - 1u);
    Part _e70 = part;
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
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

float greatest_of_lanes(
    uint lane_2,
    uint log2_lanes,
    float value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_6& lane_greatest
) {
    float all = {};
    uint i_10 = 1u;
    uint step = {};
    if (log2_lanes == 8u) {
        float unnamed = metal::simd_max(value);
        bool _e7 = leads_subgroup;
        if (_e7) {
            uint _e10 = own_subgroup;
            lane_greatest.inner[_e10] = unnamed;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        float _e14 = lane_greatest.inner[0];
        all = _e14;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e28 = i_10;
                i_10 = _e28 + 1u;
            }
            loop_init = false;
            uint _e18 = i_10;
            uint _e20 = all_subgroups;
            if (_e18 < _e20) {
            } else {
                break;
            }
            {
                float _e22 = all;
                uint _e24 = i_10;
                float _e26 = lane_greatest.inner[_e24];
                all = metal::max(_e22, _e26);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        float _e31 = all;
        return _e31;
    }
    lane_greatest.inner[lane_2] = value;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint lanes = 1u << log2_lanes;
    step = lanes >> 1u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e58 = step;
            step = _e58 >> 1u;
        }
        loop_init_1 = false;
        uint _e39 = step;
        if (_e39 > 0u) {
        } else {
            break;
        }
        {
            uint _e45 = step;
            if ((lane_2 & (lanes - 1u)) < _e45) {
                float _e51 = lane_greatest.inner[lane_2];
                uint _e53 = step;
                float _e56 = lane_greatest.inner[lane_2 + _e53];
                lane_greatest.inner[lane_2] = metal::max(_e51, _e56);
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    float all_2 = lane_greatest.inner[lane_2 & ~((lanes - 1u))];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return all_2;
}

metal::float2 sum_pairs(
    uint lane_3,
    uint log2_lanes_1,
    metal::float2 value_1,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_8& lane_sums
) {
    metal::float2 all_1 = metal::float2(0.0);
    uint i_11 = 0u;
    uint step_1 = {};
    if (log2_lanes_1 == 8u) {
        metal::float2 unnamed_1 = metal::simd_sum(value_1);
        bool _e7 = leads_subgroup;
        if (_e7) {
            uint _e10 = own_subgroup;
            lane_sums.inner[_e10] = unnamed_1;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init_2 = true;
        while(true) {
            if (!loop_init_2) {
                uint _e27 = i_11;
                i_11 = _e27 + 1u;
            }
            loop_init_2 = false;
            uint _e17 = i_11;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all_1;
                uint _e23 = i_11;
                metal::float2 _e25 = lane_sums.inner[_e23];
                all_1 = _e21 + _e25;
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float2 _e30 = all_1;
        return _e30;
    }
    lane_sums.inner[lane_3] = value_1;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint lanes_1 = 1u << log2_lanes_1;
    step_1 = lanes_1 >> 1u;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e55 = step_1;
            step_1 = _e55 >> 1u;
        }
        loop_init_3 = false;
        uint _e38 = step_1;
        if (_e38 > 0u) {
        } else {
            break;
        }
        {
            uint _e44 = step_1;
            if ((lane_3 & (lanes_1 - 1u)) < _e44) {
                metal::float2 _e48 = lane_sums.inner[lane_3];
                uint _e50 = step_1;
                metal::float2 _e53 = lane_sums.inner[lane_3 + _e50];
                lane_sums.inner[lane_3] = _e48 + _e53;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::float2 all_3 = lane_sums.inner[lane_3 & ~((lanes_1 - 1u))];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return all_3;
}

float sum_lanes(
    uint lane_4,
    uint log2_lanes_2,
    float value_2,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_8& lane_sums
) {
    metal::float2 _e5 = sum_pairs(lane_4, log2_lanes_2, metal::float2(value_2, 0.0), own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e5.x;
}

void put(
    uint i_12,
    float value_3,
    device type_4& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_12] = as_type<uint>(value_3);
    return;
}

float c_at(
    uint i_13,
    device type_4 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_13, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_13, C_DTYPE);
    return _e7;
}

void put_pair(
    uint i_14,
    float first,
    float second,
    device type_4& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_14] = as_type<uint>(first);
    out[i_14 + 1u] = as_type<uint>(second);
    return;
}

struct softmaxInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void softmax(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, device type_4 const& a [[user(fake0)]]
, device type_4 const& b [[user(fake0)]]
, threadgroup type_6& lane_greatest
, threadgroup type_8& lane_sums
, device type_4& out [[user(fake0)]]
, device type_4 const& c [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    float own = -340282350000000000000000000000000000000.0;
    uint i = {};
    uint i_1 = {};
    float sum = 0.0;
    uint i_2 = {};
    uint i_3 = {};
    uint i_4 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_1 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Part _e10 = part_of(rows_1, _e9, lane);
    View _e13 = params.a;
    uint _e15 = position(_e13, _e10.at);
    uint stride = params.a.strides.w;
    View _e23 = params.b;
    uint _e25 = position(_e23, _e10.at);
    uint mask_stride = params.b.strides.w;
    uint _e33 = params.first_head;
    float _e37 = slope(_e33 + _e10.at.y, params);
    bool is_whole = rows_1.chunks == 1u;
    uint chunks = (2u * _e10.row) * rows_1.chunks;
    if (is_whole) {
        i = _e10.first + _e10.lane;
        bool loop_init_4 = true;
        while(true) {
            if (!loop_init_4) {
                uint _e64 = i;
                i = _e64 + _e10.lanes;
            }
            loop_init_4 = false;
            uint _e52 = i;
            if (_e52 < _e10.last) {
            } else {
                break;
            }
            {
                float _e55 = own;
                uint _e56 = i;
                uint _e59 = i;
                float _e62 = score(_e15 + (_e56 * stride), _e25 + (_e59 * mask_stride), _e37, params, a, b, _buffer_sizes);
                own = metal::max(_e55, _e62);
            }
        }
    } else {
        i_1 = _e10.lane;
        bool loop_init_5 = true;
        while(true) {
            if (!loop_init_5) {
                uint _e79 = i_1;
                i_1 = _e79 + _e10.lanes;
            }
            loop_init_5 = false;
            uint _e69 = i_1;
            if (_e69 < rows_1.chunks) {
            } else {
                break;
            }
            {
                float _e72 = own;
                uint _e74 = i_1;
                float _e77 = c_at(chunks + (2u * _e74), c, _buffer_sizes);
                own = metal::max(_e72, _e77);
            }
        }
    }
    float _e83 = own;
    float _e84 = greatest_of_lanes(lane, rows_1.log2_lanes, _e83, own_subgroup, all_subgroups, leads_subgroup, lane_greatest);
    if (is_whole) {
        i_2 = _e10.first + _e10.lane;
        bool loop_init_6 = true;
        while(true) {
            if (!loop_init_6) {
                uint _e104 = i_2;
                i_2 = _e104 + _e10.lanes;
            }
            loop_init_6 = false;
            uint _e91 = i_2;
            if (_e91 < _e10.last) {
            } else {
                break;
            }
            {
                uint _e94 = i_2;
                uint _e97 = i_2;
                float _e100 = score(_e15 + (_e94 * stride), _e25 + (_e97 * mask_stride), _e37, params, a, b, _buffer_sizes);
                float _e101 = sum;
                float _e102 = weight(_e100, _e84);
                sum = _e101 + _e102;
            }
        }
    } else {
        i_3 = _e10.lane;
        bool loop_init_7 = true;
        while(true) {
            if (!loop_init_7) {
                uint _e128 = i_3;
                i_3 = _e128 + _e10.lanes;
            }
            loop_init_7 = false;
            uint _e109 = i_3;
            if (_e109 < rows_1.chunks) {
            } else {
                break;
            }
            {
                float _e112 = sum;
                uint _e114 = i_3;
                float _e119 = c_at((chunks + (2u * _e114)) + 1u, c, _buffer_sizes);
                uint _e121 = i_3;
                float _e124 = c_at(chunks + (2u * _e121), c, _buffer_sizes);
                float _e125 = weight(_e124, _e84);
                sum = _e112 + (_e119 * _e125);
            }
        }
    }
    float _e132 = sum;
    float _e133 = sum_lanes(lane, rows_1.log2_lanes, _e132, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float divisor = (_e84 == -340282350000000000000000000000000000000.0) ? 1.0 : _e133;
    View _e140 = params.out;
    uint _e142 = position(_e140, _e10.at);
    uint step_2 = params.out.strides.w;
    i_4 = _e10.first + (_e10.lane * PER);
    bool loop_init_8 = true;
    while(true) {
        if (!loop_init_8) {
            uint _e188 = i_4;
            i_4 = _e188 + (_e10.lanes * PER);
        }
        loop_init_8 = false;
        uint _e154 = i_4;
        if (_e154 < _e10.last) {
        } else {
            break;
        }
        {
            uint _e157 = i_4;
            uint _e160 = i_4;
            float _e163 = score(_e15 + (_e157 * stride), _e25 + (_e160 * mask_stride), _e37, params, a, b, _buffer_sizes);
            float _e164 = weight(_e163, _e84);
            float y_1 = _e164 / divisor;
            if (true) {
                uint _e170 = i_4;
                put(_e142 + (_e170 * step_2), y_1, out, _buffer_sizes);
            } else {
                uint _e173 = i_4;
                uint at_2 = _e25 + ((_e173 + 1u) * mask_stride);
                uint _e178 = i_4;
                float _e183 = score(_e15 + ((_e178 + 1u) * stride), at_2, _e37, params, a, b, _buffer_sizes);
                uint _e184 = i_4;
                float _e186 = weight(_e183, _e84);
                put_pair(_e142 + _e184, y_1, _e186 / divisor, out, _buffer_sizes);
            }
        }
    }
    return;
}
