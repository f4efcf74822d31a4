// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size4;
    uint size5;
    uint size7;
    uint size8;
};

struct View {
    metal::uint4 strides;
    uint offset;
    char _pad2[12];
};
struct Params {
    metal::uint4 batch;
    View a;
    View b;
    View c;
    View out;
    metal::uint4 size;
    metal::uint4 steps;
    metal::uint4 places;
    metal::float4 factors;
};
struct Bases {
    uint a;
    uint b;
    uint c;
    uint out;
};
struct RowSums {
    metal::float4 r0_;
    metal::float4 r1_;
    metal::float4 r2_;
    metal::float4 r3_;
    metal::float4 r4_;
    metal::float4 r5_;
    metal::float4 r6_;
    metal::float4 r7_;
};
struct Eight {
    metal::float4 low;
    metal::float4 high;
};
typedef metal::uint4 type_6[1];
struct type_7 {
    metal::float4 inner[1024];
};
typedef uint type_8[1];
constant uint F32_ = 0u;
constant uint F8E4M3_ = 3u;
constant uint BF16_ = 2u;
constant uint VECTOR_WORKGROUP = 128u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint ROWS = 8u;
constant uint PARTIALS = 1024u;
constant uint ADDEND = 0u;
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

uint flat_workgroup(
    metal::uint3 id_1,
    metal::uint3 count_1
) {
    return (id_1.y * count_1.x) + id_1.x;
}

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

uint b_rows(
    constant Params& params
) {
    uint _e3 = params.size.y;
    return _e3;
}

uint b_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.z;
    return _e3;
}

float eight_bits(
    uint code,
    uint dtype
) {
    uint bits = {};
    uint magnitude = code & 127u;
    uint sign = (code & 128u) << 24u;
    if (dtype == F8E4M3_) {
        bits = (magnitude << 20u) + 1006632960u;
        if (magnitude < 8u) {
            bits = as_type<uint>(static_cast<float>(magnitude) * 0.001953125);
        }
        if (magnitude == 127u) {
            bits = 2143289344u;
        }
    } else {
        bits = (magnitude << 21u) + 939524096u;
        if (magnitude < 4u) {
            bits = as_type<uint>(static_cast<float>(magnitude) * 0.000015258789);
        }
        if (magnitude >= 124u) {
            bits = 2139095040u | ((magnitude & 3u) << 21u);
        }
    }
    uint _e42 = bits;
    return as_type<float>(_e42 | sign);
}

metal::float4 four_of(
    metal::uint4 run,
    uint i,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<metal::float4>(run);
    }
    if (dtype_1 >= F8E4M3_) {
        uint word_1 = run[(i >> 2u) & 3u];
        float _e15 = eight_bits(word_1 & 255u, dtype_1);
        float _e20 = eight_bits((word_1 >> 8u) & 255u, dtype_1);
        float _e25 = eight_bits((word_1 >> 16u) & 255u, dtype_1);
        float _e28 = eight_bits(word_1 >> 24u, dtype_1);
        return metal::float4(_e15, _e20, _e25, _e28);
    }
    metal::uint2 words = ((i & 4u) != 0u) ? run.zw : run.xy;
    if (dtype_1 == BF16_) {
        return as_type<metal::float4>(metal::uint4(words.x << 16u, words.x & 4294901760u, words.y << 16u, words.y & 4294901760u));
    }
    return metal::float4(float2(as_type<half2>(words.x)), float2(as_type<half2>(words.y)));
}

uint run_of(
    uint i_1,
    uint dtype_2
) {
    if (dtype_2 == F32_) {
        return i_1 >> 2u;
    }
    return (dtype_2 >= F8E4M3_) ? (i_1 >> 4u) : (i_1 >> 3u);
}

metal::float4 b_four(
    uint i_2,
    device type_6 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = run_of(i_2, B_DTYPE);
    metal::uint4 _e5 = b_1[_e3];
    metal::float4 _e7 = four_of(_e5, i_2, B_DTYPE);
    return _e7;
}

Eight b_eight(
    uint base,
    uint row,
    uint k,
    constant Params& params,
    device type_6 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = b_rows(params);
    uint _e7 = b_row_stride(params);
    uint i_10 = (base + (metal::min(row, _e3 - 1u) * _e7)) + k;
    metal::float4 _e11 = b_four(i_10, b_1, _buffer_sizes);
    metal::float4 _e14 = b_four(i_10 + 4u, b_1, _buffer_sizes);
    return Eight {_e11, _e14};
}

float hot_dot(
    Eight a,
    Eight b,
    float sum
) {
    metal::float4 products = metal::fma(a.high, b.high, a.low * b.low);
    return sum + ((products.x + products.y) + (products.z + products.w));
}

metal::float4 hot_row(
    Eight a_1,
    Eight b0_,
    Eight b1_,
    Eight b2_,
    Eight b3_,
    metal::float4 sums
) {
    float _e7 = hot_dot(a_1, b0_, sums.x);
    float _e9 = hot_dot(a_1, b1_, sums.y);
    float _e11 = hot_dot(a_1, b2_, sums.z);
    float _e13 = hot_dot(a_1, b3_, sums.w);
    return metal::float4(_e7, _e9, _e11, _e13);
}

uint a_rows(
    constant Params& params
) {
    uint _e3 = params.size.x;
    return _e3;
}

uint a_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.x;
    return _e3;
}

metal::float4 a_four(
    uint i_3,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = run_of(i_3, A_DTYPE);
    metal::uint4 _e5 = a_2[_e3];
    metal::float4 _e7 = four_of(_e5, i_3, A_DTYPE);
    return _e7;
}

Eight a_eight(
    uint base_1,
    uint row_1,
    uint k_1,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = a_rows(params);
    uint _e7 = a_row_stride(params);
    uint i_11 = (base_1 + (metal::min(row_1, _e3 - 1u) * _e7)) + k_1;
    metal::float4 _e11 = a_four(i_11, a_2, _buffer_sizes);
    metal::float4 _e14 = a_four(i_11 + 4u, a_2, _buffer_sizes);
    return Eight {_e11, _e14};
}

RowSums hot_eight_k(
    Bases bases,
    uint column,
    uint k_2,
    RowSums sums_1,
    constant Params& params,
    device type_6 const& b_1,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    RowSums next = {};
    Eight _e5 = b_eight(bases.b, column, k_2, params, b_1, _buffer_sizes);
    Eight _e9 = b_eight(bases.b, column + 1u, k_2, params, b_1, _buffer_sizes);
    Eight _e13 = b_eight(bases.b, column + 2u, k_2, params, b_1, _buffer_sizes);
    Eight _e17 = b_eight(bases.b, column + 3u, k_2, params, b_1, _buffer_sizes);
    next = sums_1;
    Eight _e22 = a_eight(bases.a, 0u, k_2, params, a_2, _buffer_sizes);
    metal::float4 _e24 = hot_row(_e22, _e5, _e9, _e13, _e17, sums_1.r0_);
    next.r0_ = _e24;
    if (true) {
        Eight _e32 = a_eight(bases.a, 1u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e34 = hot_row(_e32, _e5, _e9, _e13, _e17, sums_1.r1_);
        next.r1_ = _e34;
    }
    if (true) {
        Eight _e42 = a_eight(bases.a, 2u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e44 = hot_row(_e42, _e5, _e9, _e13, _e17, sums_1.r2_);
        next.r2_ = _e44;
        Eight _e48 = a_eight(bases.a, 3u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e50 = hot_row(_e48, _e5, _e9, _e13, _e17, sums_1.r3_);
        next.r3_ = _e50;
    }
    if (true) {
        Eight _e58 = a_eight(bases.a, 4u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e60 = hot_row(_e58, _e5, _e9, _e13, _e17, sums_1.r4_);
        next.r4_ = _e60;
        Eight _e64 = a_eight(bases.a, 5u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e66 = hot_row(_e64, _e5, _e9, _e13, _e17, sums_1.r5_);
        next.r5_ = _e66;
        Eight _e70 = a_eight(bases.a, 6u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e72 = hot_row(_e70, _e5, _e9, _e13, _e17, sums_1.r6_);
        next.r6_ = _e72;
        Eight _e76 = a_eight(bases.a, 7u, k_2, params, a_2, _buffer_sizes);
        metal::float4 _e78 = hot_row(_e76, _e5, _e9, _e13, _e17, sums_1.r7_);
        next.r7_ = _e78;
    }
    RowSums _e79 = next;
    return _e79;
}

RowSums row_sums(
    Bases bases_1,
    uint column_1,
    uint lane_1,
    uint depth,
    constant Params& params,
    device type_6 const& b_1,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    RowSums sums_2 = RowSums {};
    uint k_3 = {};
    uint first = lane_1 * 8u;
    k_3 = first;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e14 = k_3;
            k_3 = _e14 + 1024u;
        }
        loop_init = false;
        uint _e9 = k_3;
        if (_e9 < depth) {
        } else {
            break;
        }
        {
            uint _e11 = k_3;
            RowSums _e12 = sums_2;
            RowSums _e13 = hot_eight_k(bases_1, column_1, _e11, _e12, params, b_1, a_2, _buffer_sizes);
            sums_2 = _e13;
        }
    }
    RowSums _e20 = sums_2;
    return _e20;
}

void store_partial(
    uint lane_2,
    uint row_2,
    metal::float4 sums_3,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    threadgroup type_7& partial
) {
    metal::float4 unnamed = metal::simd_sum(sums_3);
    bool _e5 = leads_subgroup;
    if (_e5) {
        uint _e8 = all_subgroups;
        uint _e11 = own_subgroup;
        partial.inner[(row_2 * _e8) + _e11] = unnamed;
        return;
    } else {
        return;
    }
}

float decode(
    uint word,
    uint i_4,
    uint dtype_3
) {
    if (dtype_3 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_4 & 1u) << 4u)) & 65535u;
    if (dtype_3 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_5,
    uint dtype_4
) {
    return (dtype_4 == F32_) ? i_5 : (i_5 >> 1u);
}

float c_at(
    uint i_6,
    device type_8 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_6, C_DTYPE);
    return _e7;
}

void put(
    uint i_7,
    float value,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_7] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases_2,
    uint row_3,
    uint column_2,
    float sum_1,
    constant Params& params,
    device type_8 const& c,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    float y = {};
    uint _e7 = params.size.x;
    if (!((row_3 >= _e7))) {
        uint _e15 = params.size.y;
        local = column_2 >= _e15;
    } else {
        local = true;
    }
    bool _e18 = local;
    if (_e18) {
        return;
    }
    float _e22 = params.factors.x;
    y = _e22 * sum_1;
    if (false) {
        uint _e33 = params.places.x;
        uint _e39 = params.places.y;
        uint place = (bases_2.c + (row_3 * _e33)) + (column_2 * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place, c, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases_2.out + (row_3 * _e53)) + (column_2 * _e59), _e62, out, _buffer_sizes);
    return;
}

void finish_four(
    Bases bases_3,
    uint row_4,
    uint column_3,
    metal::float4 sums_4,
    constant Params& params,
    device type_8 const& c,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish(bases_3, row_4, column_3, sums_4.x, params, c, out, _buffer_sizes);
    finish(bases_3, row_4, column_3 + 1u, sums_4.y, params, c, out, _buffer_sizes);
    finish(bases_3, row_4, column_3 + 2u, sums_4.z, params, c, out, _buffer_sizes);
    finish(bases_3, row_4, column_3 + 3u, sums_4.w, params, c, out, _buffer_sizes);
    return;
}

void vector_product(
    Bases bases_4,
    uint column_4,
    uint lane_3,
    uint depth_1,
    bool writes,
    thread uint& own_subgroup,
    thread uint& all_subgroups,
    thread bool& leads_subgroup,
    constant Params& params,
    device type_6 const& b_1,
    device type_6 const& a_2,
    threadgroup type_7& partial,
    device type_8 const& c,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    metal::float4 sum_2 = {};
    uint i_8 = 1u;
    RowSums _e5 = row_sums(bases_4, column_4, lane_3, depth_1, params, b_1, a_2, _buffer_sizes);
    store_partial(lane_3, 0u, _e5.r0_, own_subgroup, all_subgroups, leads_subgroup, partial);
    if (true) {
        store_partial(lane_3, 1u, _e5.r1_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    if (true) {
        store_partial(lane_3, 2u, _e5.r2_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 3u, _e5.r3_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    if (true) {
        store_partial(lane_3, 4u, _e5.r4_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 5u, _e5.r5_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 6u, _e5.r6_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 7u, _e5.r7_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (lane_3 < ROWS) {
        local_1 = writes;
    } else {
        local_1 = false;
    }
    bool _e39 = local_1;
    if (_e39) {
        uint partials = all_subgroups;
        uint first_1 = lane_3 * partials;
        metal::float4 _e45 = partial.inner[first_1];
        sum_2 = _e45;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e59 = i_8;
                i_8 = _e59 + 1u;
            }
            loop_init_1 = false;
            uint _e49 = i_8;
            if (_e49 < partials) {
            } else {
                break;
            }
            {
                metal::float4 _e51 = sum_2;
                uint _e53 = i_8;
                metal::float4 _e56 = partial.inner[first_1 + _e53];
                sum_2 = _e51 + _e56;
            }
        }
        metal::float4 _e61 = sum_2;
        finish_four(bases_4, lane_3, column_4, _e61, params, c, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}

metal::uint4 unravel(
    uint i_9,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_9);
    }
    uint z = i_9 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_9 - (z * dims_1.w));
    }
    uint y_1 = z / dims_1.z;
    uint x = y_1 / dims_1.y;
    return metal::uint4(x, y_1 - (x * dims_1.y), z - (y_1 * dims_1.z), i_9 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

Bases bases_of(
    uint batch,
    constant Params& params
) {
    metal::uint4 _e3 = params.batch;
    metal::uint4 _e4 = unravel(batch, _e3);
    View _e7 = params.a;
    uint _e8 = position(_e7, _e4);
    View _e11 = params.b;
    uint _e12 = position(_e11, _e4);
    View _e15 = params.c;
    uint _e16 = position(_e15, _e4);
    View _e19 = params.out;
    uint _e20 = position(_e19, _e4);
    return Bases {_e8, _e12, _e16, _e20};
}

struct product_vectorInput {
};
[[max_total_threads_per_threadgroup(128)]] kernel void product_vector(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint subgroups [[simdgroups_per_threadgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Params& params [[user(fake0)]]
, device type_6 const& b_1 [[user(fake0)]]
, device type_6 const& a_2 [[user(fake0)]]
, threadgroup type_7& partial
, device type_8 const& c [[user(fake0)]]
, device type_8& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint own_subgroup = {};
    uint all_subgroups = {};
    bool leads_subgroup = {};
    enter_subgroups(subgroup, subgroups, invocation, own_subgroup, all_subgroups, leads_subgroup);
    uint _e9 = params.size.y;
    uint quads = (_e9 + 3u) / 4u;
    uint _e14 = flat_workgroup(workgroup, workgroups);
    metal::uint4 _e17 = params.batch;
    uint _e18 = count_of(_e17);
    if (_e14 >= (quads * _e18)) {
        return;
    }
    Bases _e22 = bases_of(_e14 / quads, params);
    uint _e29 = params.size.z;
    vector_product(_e22, (_e14 % quads) * 4u, lane, _e29, true, own_subgroup, all_subgroups, leads_subgroup, params, b_1, a_2, partial, c, out, _buffer_sizes);
    return;
}
