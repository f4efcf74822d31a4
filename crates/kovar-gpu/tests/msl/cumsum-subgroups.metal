// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size6;
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
};
struct type_3 {
    float inner[2304];
};
struct type_4 {
    float inner[256];
};
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
typedef uint type_7[1];
struct type_9 {
    metal::float2 inner[256];
};
constant uint SERIAL = 8u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint PER = 1u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;

uint slot(
    uint i_1
) {
    return i_1 + (i_1 / SERIAL);
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
    uint y = z / dims.z;
    uint x_1 = y / dims.y;
    return metal::uint4(x_1, y - (x_1 * dims.y), z - (y * dims.z), i_2 - (z * dims.w));
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
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
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

float b_at(
    uint i_5,
    device type_7 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_5, B_DTYPE);
    return _e7;
}

metal::float2 sum_pairs(
    uint lane_2,
    uint log2_lanes,
    metal::float2 value,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_9& lane_sums
) {
    metal::float2 all = metal::float2(0.0);
    uint i_6 = 0u;
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
                uint _e27 = i_6;
                i_6 = _e27 + 1u;
            }
            loop_init = false;
            uint _e17 = i_6;
            uint _e19 = all_subgroups;
            if (_e17 < _e19) {
            } else {
                break;
            }
            {
                metal::float2 _e21 = all;
                uint _e23 = i_6;
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
    threadgroup type_9& lane_sums
) {
    metal::float2 _e5 = sum_pairs(lane_3, log2_lanes_1, metal::float2(value_1, 0.0), own_subgroup, all_subgroups, leads_subgroup, lane_sums);
    return _e5.x;
}

float a_at(
    uint i_7,
    device type_7 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_7, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_7, A_DTYPE);
    return _e7;
}

void put(
    uint i_8,
    float value_2,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_8] = as_type<uint>(value_2);
    return;
}

void put_pair(
    uint i_9,
    float first,
    float second,
    device type_7& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_9] = as_type<uint>(first);
    out[i_9 + 1u] = as_type<uint>(second);
    return;
}

struct cumsumInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void cumsum(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, threadgroup type_3& tile
, threadgroup type_4& totals
, device type_7 const& b [[user(fake0)]]
, threadgroup type_9& lane_sums
, device type_7 const& a [[user(fake0)]]
, device type_7& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    float before = 0.0;
    float sum = 0.0;
    uint i = {};
    uint done = 0u;
    uint j = {};
    float x = {};
    float total = {};
    uint j_1 = {};
    uint reach = {};
    float left = {};
    float running = {};
    uint j_2 = {};
    uint j_3 = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    Rows rows_1 = params.rows;
    uint _e9 = flat_workgroup(workgroup, workgroups);
    Part _e10 = part_of(rows_1, _e9, lane);
    View _e13 = params.a;
    uint _e15 = position(_e13, _e10.at);
    uint stride = params.a.strides.w;
    View _e23 = params.out;
    uint _e25 = position(_e23, _e10.at);
    uint step_1 = params.out.strides.w;
    if (rows_1.chunks > 1u) {
        uint sums = _e10.row * rows_1.chunks;
        i = sums + _e10.lane;
        bool loop_init_2 = true;
        while(true) {
            if (!loop_init_2) {
                uint _e51 = i;
                i = _e51 + _e10.lanes;
            }
            loop_init_2 = false;
            uint _e44 = i;
            if (_e44 < _e10.number) {
            } else {
                break;
            }
            {
                float _e47 = sum;
                uint _e48 = i;
                float _e49 = b_at(_e48, b, _buffer_sizes);
                sum = _e47 + _e49;
            }
        }
        float _e55 = sum;
        float _e56 = sum_lanes(lane, rows_1.log2_lanes, _e55, own_subgroup, all_subgroups, leads_subgroup, lane_sums);
        before = _e56;
    }
    uint first_lane = lane - _e10.lane;
    uint own = first_lane * SERIAL;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e223 = done;
            done = _e223 + (_e10.lanes * SERIAL);
        }
        loop_init_3 = false;
        uint _e63 = done;
        if (_e63 < rows_1.chunk) {
        } else {
            break;
        }
        {
            uint _e67 = done;
            uint first_1 = _e10.first + _e67;
            j = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e93 = j;
                    j = _e93 + 1u;
                }
                loop_init_4 = false;
                uint _e71 = j;
                if (_e71 < SERIAL) {
                } else {
                    break;
                }
                {
                    uint _e74 = j;
                    uint i_10 = (_e74 * _e10.lanes) + _e10.lane;
                    x = 0.0;
                    if ((first_1 + i_10) < _e10.last) {
                        float _e87 = a_at(_e15 + ((first_1 + i_10) * stride), a, _buffer_sizes);
                        x = _e87;
                    }
                    uint _e90 = slot(own + i_10);
                    float _e92 = x;
                    tile.inner[_e90] = _e92;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            total = 0.0;
            j_1 = 0u;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e113 = j_1;
                    j_1 = _e113 + 1u;
                }
                loop_init_5 = false;
                uint _e100 = j_1;
                if (_e100 < SERIAL) {
                } else {
                    break;
                }
                {
                    float _e103 = total;
                    uint _e107 = j_1;
                    uint _e109 = slot((lane * SERIAL) + _e107);
                    float _e111 = tile.inner[_e109];
                    total = _e103 + _e111;
                }
            }
            float _e118 = total;
            totals.inner[lane] = _e118;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            reach = 1u;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e139 = reach;
                    reach = _e139 << 1u;
                }
                loop_init_6 = false;
                uint _e121 = reach;
                if (_e121 < _e10.lanes) {
                } else {
                    break;
                }
                {
                    left = 0.0;
                    uint _e127 = reach;
                    if (_e10.lane >= _e127) {
                        uint _e130 = reach;
                        float _e133 = totals.inner[lane - _e130];
                        left = _e133;
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    float _e136 = totals.inner[lane];
                    float _e137 = left;
                    totals.inner[lane] = _e136 + _e137;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
            float _e142 = before;
            running = _e142;
            if (_e10.lane > 0u) {
                float _e147 = running;
                float _e152 = totals.inner[lane - 1u];
                running = _e147 + _e152;
            }
            j_2 = 0u;
            bool loop_init_7 = true;
            while(true) {
                if (!loop_init_7) {
                    uint _e172 = j_2;
                    j_2 = _e172 + 1u;
                }
                loop_init_7 = false;
                uint _e156 = j_2;
                if (_e156 < SERIAL) {
                } else {
                    break;
                }
                {
                    uint _e161 = j_2;
                    uint _e163 = slot((lane * SERIAL) + _e161);
                    float _e164 = running;
                    float _e167 = tile.inner[_e163];
                    running = _e164 + _e167;
                    float _e171 = running;
                    tile.inner[_e163] = _e171;
                }
            }
            float _e175 = before;
            float _e182 = totals.inner[(first_lane + _e10.lanes) - 1u];
            before = _e175 + _e182;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            j_3 = 0u;
            bool loop_init_8 = true;
            while(true) {
                if (!loop_init_8) {
                    uint _e220 = j_3;
                    j_3 = _e220 + PER;
                }
                loop_init_8 = false;
                uint _e186 = j_3;
                if (_e186 < SERIAL) {
                } else {
                    break;
                }
                {
                    uint _e189 = j_3;
                    uint i_11 = (_e189 * _e10.lanes) + (_e10.lane * PER);
                    if ((first_1 + i_11) < _e10.last) {
                        uint _e201 = slot(own + i_11);
                        float y_1 = tile.inner[_e201];
                        if (true) {
                            put(_e25 + ((first_1 + i_11) * step_1), y_1, out, _buffer_sizes);
                        } else {
                            uint _e217 = slot((own + i_11) + 1u);
                            float _e219 = tile.inner[_e217];
                            put_pair((_e25 + first_1) + i_11, y_1, _e219, out, _buffer_sizes);
                        }
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    return;
}
