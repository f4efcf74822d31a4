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
struct Scores {
    uint start;
    uint stride;
    uint mask_start;
    uint mask_stride;
    float slope;
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
typedef uint type_4[1];
struct type_6 {
    float inner[256];
};
struct type_8 {
    metal::float2 inner[256];
};
typedef metal::atomic_uint type_10[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint A_DTYPE = 1u;
constant uint B_DTYPE = 1u;
constant uint OUT_DTYPE = 1u;
constant uint C_DTYPE = 0u;
constant uint PER = 1u;

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

bool is_negative_infinity(
    float x_1
) {
    return as_type<uint>(x_1) == 4286578688u;
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

Scores scores_of(
    Chunk chunk,
    constant Params& params
) {
    View _e3 = params.a;
    uint _e5 = position(_e3, chunk.at);
    uint _e10 = params.a.strides.w;
    View _e13 = params.b;
    uint _e15 = position(_e13, chunk.at);
    uint _e20 = params.b.strides.w;
    uint _e23 = params.first_head;
    float _e27 = slope(_e23 + chunk.at.y, params);
    return Scores {_e5, _e10, _e15, _e20, _e27};
}

float decode(
    uint word,
    uint i_3,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_3 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_4,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_4 : (i_4 >> 1u);
}

float a_at(
    uint i_5,
    device type_4 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_5, A_DTYPE);
    return _e7;
}

float b_at(
    uint i_6,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_6, B_DTYPE);
    return _e7;
}

float score(
    Scores scores,
    uint i_7,
    constant Params& params,
    device type_4 const& a,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    float s = {};
    float _e6 = a_at(scores.start + (i_7 * scores.stride), a, _buffer_sizes);
    float _e9 = params.scale;
    s = _e6 * _e9;
    uint _e14 = params.masked;
    if (_e14 != 0u) {
        float _e21 = b_at(scores.mask_start + (i_7 * scores.mask_stride), b, _buffer_sizes);
        bool _e22 = is_negative_infinity(_e21);
        if (_e22) {
            return -340282350000000000000000000000000000000.0;
        }
        float _e25 = s;
        s = metal::fma(scores.slope, _e21, _e25);
    }
    float _e27 = s;
    float _e28 = s;
    bool _e29 = is_negative_infinity(_e28);
    return _e29 ? -340282350000000000000000000000000000000.0 : _e27;
}

float weight(
    float score_1,
    float greatest
) {
    return (score_1 == -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(score_1 - greatest);
}

float greatest_score(
    Chunk chunk_1,
    Scores scores_1,
    constant Params& params,
    device type_4 const& a,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    float greatest_1 = -340282350000000000000000000000000000000.0;
    uint i_8 = {};
    i_8 = chunk_1.first + chunk_1.lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e15 = i_8;
            i_8 = _e15 + chunk_1.lanes;
        }
        loop_init = false;
        uint _e8 = i_8;
        if (_e8 < chunk_1.last) {
        } else {
            break;
        }
        {
            float _e11 = greatest_1;
            uint _e12 = i_8;
            float _e13 = score(scores_1, _e12, params, a, b, _buffer_sizes);
            greatest_1 = metal::max(_e11, _e13);
        }
    }
    float _e18 = greatest_1;
    return _e18;
}

float weight_sum(
    Chunk chunk_2,
    Scores scores_2,
    float greatest_2,
    constant Params& params,
    device type_4 const& a,
    device type_4 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    float sum_1 = 0.0;
    uint i_9 = {};
    i_9 = chunk_2.first + chunk_2.lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e17 = i_9;
            i_9 = _e17 + chunk_2.lanes;
        }
        loop_init_1 = false;
        uint _e9 = i_9;
        if (_e9 < chunk_2.last) {
        } else {
            break;
        }
        {
            float _e12 = sum_1;
            uint _e13 = i_9;
            float _e14 = score(scores_2, _e13, params, a, b, _buffer_sizes);
            float _e15 = weight(_e14, greatest_2);
            sum_1 = _e12 + _e15;
        }
    }
    float _e20 = sum_1;
    return _e20;
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
    uint i_10,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_10);
    }
    uint z = i_10 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_10 - (z * dims.w));
    }
    uint y = z / dims.z;
    uint x_2 = y / dims.y;
    return metal::uint4(x_2, y - (x_2 * dims.y), z - (y * dims.z), i_10 - (z * dims.w));
}

Chunk chunk_of(
    Rows rows,
    uint workgroup_1,
    uint lane_1
) {
    Chunk chunk_3 = {};
    uint index = (workgroup_1 << (8u - rows.log2_lanes)) + (lane_1 >> rows.log2_lanes);
    chunk_3.inside = index < (rows.count * rows.chunks);
    bool _e19 = chunk_3.inside;
    chunk_3.index = _e19 ? index : 0u;
    uint _e23 = chunk_3.index;
    chunk_3.row = _e23 / rows.chunks;
    uint _e27 = chunk_3.row;
    metal::uint4 _e32 = unravel(_e27, metal::uint4(1u, rows.dims.xyz));
    chunk_3.at = metal::uint4(_e32.yzw, 0u);
    uint _e39 = chunk_3.index;
    uint _e41 = chunk_3.row;
    chunk_3.first = (_e39 - (_e41 * rows.chunks)) * rows.chunk;
    uint _e49 = chunk_3.first;
    uint _e51 = chunk_3.first;
    bool _e58 = chunk_3.inside;
    chunk_3.last = _e58 ? metal::min(_e51 + rows.chunk, rows.dims.w) : _e49;
    chunk_3.lanes = 1u << rows.log2_lanes;
    uint _e66 = chunk_3.lanes;
    chunk_3.lane = lane_1 & (_e66 - 1u);
    Chunk _e70 = chunk_3;
    return _e70;
}

uint flat_workgroup(
    metal::uint3 id_1,
    metal::uint3 count_1
) {
    return (id_1.y * count_1.x) + id_1.x;
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
    uint i_11 = 1u;
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
        bool loop_init_2 = true;
        while(true) {
            if (!loop_init_2) {
                uint _e28 = i_11;
                i_11 = _e28 + 1u;
            }
            loop_init_2 = false;
            uint _e18 = i_11;
            uint _e20 = all_subgroups;
            if (_e18 < _e20) {
            } else {
                break;
            }
            {
                float _e22 = all;
                uint _e24 = i_11;
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
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e58 = step;
            step = _e58 >> 1u;
        }
        loop_init_3 = false;
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
    uint i_12 = 0u;
    uint step_1 = {};
    if (log2_lanes_1 == 8u) {
        metal::float2 unnamed_1 = metal::simd_sum(value_1);
        bool _e7 = leads_subgroup;
        if (_e7) {
            uint _e10 = own_subgroup;
            lane_sums.inner[_e10] = unnamed_1;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init_4 = true;
        while(true) {
            if (!loop_init_4) {
                uint _e27 = i_12;
                i_12 = _e27 + 1u;
            }
            loop_init_4 = false;
            uint _e17 = i_12;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all_1;
                uint _e23 = i_12;
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
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e55 = step_1;
            step_1 = _e55 >> 1u;
        }
        loop_init_5 = false;
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

uint encode(
    float value_3,
    uint dtype_2
) {
    uint bits = as_type<uint>(value_3);
    uint magnitude = bits & 2147483647u;
    if (dtype_2 == BF16_) {
        uint rounded = ((bits + 32767u) + ((bits >> 16u) & 1u)) >> 16u;
        return (magnitude > 2139095040u) ? ((bits >> 16u) | 64u) : rounded;
    }
    uint sign = (bits >> 16u) & 32768u;
    if (magnitude >= 1199566848u) {
        return sign | ((magnitude > 2139095040u) ? 32256u : 31744u);
    }
    if (magnitude < 947912704u) {
        return sign | (as_type<uint>(as_type<float>(magnitude) + 0.5) - 1056964608u);
    }
    return sign | ((((magnitude - 939524096u) + 4095u) + ((magnitude >> 13u) & 1u)) >> 13u);
}

void put(
    uint i_13,
    float value_4,
    device type_10& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_13 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_13 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_4, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_13 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

float c_at(
    uint i_14,
    device type_4 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_14, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_14, C_DTYPE);
    return _e7;
}

void put_pair(
    uint i_15,
    float first,
    float second,
    device type_10& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = encode(first, OUT_DTYPE);
    uint _e10 = encode(second, OUT_DTYPE);
    metal::atomic_store_explicit(&out[i_15 >> 1u], _e8 | (_e10 << 16u), metal::memory_order_relaxed);
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
, device type_10& out [[user(fake0)]]
, device type_4 const& c [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    float own = -340282350000000000000000000000000000000.0;
    uint i = {};
    float sum = 0.0;
    uint i_1 = {};
    uint i_2 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_1 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Chunk _e10 = chunk_of(rows_1, _e9, lane);
    Scores _e11 = scores_of(_e10, params);
    bool is_whole = rows_1.chunks == 1u;
    uint chunks = (2u * _e10.row) * rows_1.chunks;
    if (is_whole) {
        float _e22 = greatest_score(_e10, _e11, params, a, b, _buffer_sizes);
        own = _e22;
    } else {
        i = _e10.lane;
        bool loop_init_6 = true;
        while(true) {
            if (!loop_init_6) {
                uint _e35 = i;
                i = _e35 + _e10.lanes;
            }
            loop_init_6 = false;
            uint _e25 = i;
            if (_e25 < rows_1.chunks) {
            } else {
                break;
            }
            {
                float _e28 = own;
                uint _e30 = i;
                float _e33 = c_at(chunks + (2u * _e30), c, _buffer_sizes);
                own = metal::max(_e28, _e33);
            }
        }
    }
    float _e39 = own;
    float _e40 = greatest_of_lanes(lane, rows_1.log2_lanes, _e39, own_subgroup, all_subgroups, leads_subgroup, lane_greatest);
    if (is_whole) {
        float _e43 = weight_sum(_e10, _e11, _e40, params, a, b, _buffer_sizes);
        sum = _e43;
    } else {
        i_1 = _e10.lane;
        bool loop_init_7 = true;
        while(true) {
            if (!loop_init_7) {
                uint _e65 = i_1;
                i_1 = _e65 + _e10.lanes;
            }
            loop_init_7 = false;
            uint _e46 = i_1;
            if (_e46 < rows_1.chunks) {
            } else {
                break;
            }
            {
                float _e49 = sum;
                uint _e51 = i_1;
                float _e56 = c_at((chunks + (2u * _e51)) + 1u, c, _buffer_sizes);
                uint _e58 = i_1;
                float _e61 = c_at(chunks + (2u * _e58), c, _buffer_sizes);
                float _e62 = weight(_e61, _e40);
                sum = _e49 + (_e56 * _e62);
            }
        }
    }
    float _e69 = sum;
    float _e70 = sum_lanes(lane, rows_1.log2_lanes, _e69, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    float divisor = (_e40 == -340282350000000000000000000000000000000.0) ? 1.0 : _e70;
    View _e77 = params.out;
    uint _e79 = position(_e77, _e10.at);
    uint step_2 = params.out.strides.w;
    i_2 = _e10.first + (_e10.lane * PER);
    bool loop_init_8 = true;
    while(true) {
        if (!loop_init_8) {
            uint _e113 = i_2;
            i_2 = _e113 + (_e10.lanes * PER);
        }
        loop_init_8 = false;
        uint _e91 = i_2;
        if (_e91 < _e10.last) {
        } else {
            break;
        }
        {
            uint _e94 = i_2;
            float _e95 = score(_e11, _e94, params, a, b, _buffer_sizes);
            float _e96 = weight(_e95, _e40);
            float y_1 = _e96 / divisor;
            if (true) {
                uint _e102 = i_2;
                put(_e79 + (_e102 * step_2), y_1, out, _buffer_sizes);
            } else {
                uint _e105 = i_2;
                uint _e107 = i_2;
                float _e110 = score(_e11, _e107 + 1u, params, a, b, _buffer_sizes);
                float _e111 = weight(_e110, _e40);
                put_pair(_e79 + _e105, y_1, _e111 / divisor, out, _buffer_sizes);
            }
        }
    }
    return;
}
