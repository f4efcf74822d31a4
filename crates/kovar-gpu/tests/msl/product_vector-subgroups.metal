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
typedef uint type_6[1];
struct type_7 {
    metal::float4 inner[128];
};
constant uint F8E4M3_ = 3u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint VECTOR_WORKGROUP = 128u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint ROWS = 1u;
constant uint PARTIALS = 128u;
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

float decode(
    uint word,
    uint i,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i & 1u) << 4u)) & 65535u;
    if (dtype_1 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

float factor(
    uint word_1,
    uint i_1,
    uint dtype_2
) {
    if (dtype_2 >= F8E4M3_) {
        float _e12 = eight_bits((word_1 >> ((i_1 & 3u) << 3u)) & 255u, dtype_2);
        return _e12;
    }
    float _e13 = decode(word_1, i_1, dtype_2);
    return _e13;
}

uint word_of(
    uint i_2,
    uint dtype_3
) {
    return (dtype_3 == F32_) ? i_2 : (i_2 >> 1u);
}

uint factor_word(
    uint i_3,
    uint dtype_4
) {
    if (dtype_4 >= F8E4M3_) {
        return i_3 >> 2u;
    }
    uint _e6 = word_of(i_3, dtype_4);
    return _e6;
}

float b_element(
    uint i_4,
    device type_6 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_4, B_DTYPE);
    uint _e5 = b_1[_e3];
    float _e7 = factor(_e5, i_4, B_DTYPE);
    return _e7;
}

uint b_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.z;
    return _e3;
}

uint b_k_stride(
    constant Params& params
) {
    uint _e3 = params.steps.w;
    return _e3;
}

float b_or_zero(
    uint base,
    uint row,
    uint k,
    constant Params& params,
    device type_6 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    uint _e3 = b_rows(params);
    if (!((row >= _e3))) {
        uint _e11 = params.size.z;
        local = k >= _e11;
    } else {
        local = true;
    }
    bool _e14 = local;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = b_row_stride(params);
    uint _e19 = b_k_stride(params);
    float _e22 = b_element((base + (row * _e16)) + (k * _e19), b_1, _buffer_sizes);
    return _e22;
}

Eight b_eight(
    uint base_1,
    uint row_1,
    uint k_1,
    constant Params& params,
    device type_6 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = b_or_zero(base_1, row_1, k_1, params, b_1, _buffer_sizes);
    float _e6 = b_or_zero(base_1, row_1, k_1 + VECTOR_WORKGROUP, params, b_1, _buffer_sizes);
    float _e12 = b_or_zero(base_1, row_1, k_1 + 256u, params, b_1, _buffer_sizes);
    float _e18 = b_or_zero(base_1, row_1, k_1 + 384u, params, b_1, _buffer_sizes);
    float _e25 = b_or_zero(base_1, row_1, k_1 + 512u, params, b_1, _buffer_sizes);
    float _e31 = b_or_zero(base_1, row_1, k_1 + 640u, params, b_1, _buffer_sizes);
    float _e37 = b_or_zero(base_1, row_1, k_1 + 768u, params, b_1, _buffer_sizes);
    float _e43 = b_or_zero(base_1, row_1, k_1 + 896u, params, b_1, _buffer_sizes);
    return Eight {metal::float4(_e3, _e6, _e12, _e18), metal::float4(_e25, _e31, _e37, _e43)};
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

float a_element(
    uint i_5,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_5, A_DTYPE);
    uint _e5 = a_2[_e3];
    float _e7 = factor(_e5, i_5, A_DTYPE);
    return _e7;
}

uint a_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.x;
    return _e3;
}

uint a_k_stride(
    constant Params& params
) {
    uint _e3 = params.steps.y;
    return _e3;
}

float a_or_zero(
    uint base_2,
    uint row_2,
    uint k_2,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e3 = a_rows(params);
    if (!((row_2 >= _e3))) {
        uint _e11 = params.size.z;
        local_1 = k_2 >= _e11;
    } else {
        local_1 = true;
    }
    bool _e14 = local_1;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = a_row_stride(params);
    uint _e19 = a_k_stride(params);
    float _e22 = a_element((base_2 + (row_2 * _e16)) + (k_2 * _e19), a_2, _buffer_sizes);
    return _e22;
}

Eight a_eight(
    uint base_3,
    uint row_3,
    uint k_3,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = a_or_zero(base_3, row_3, k_3, params, a_2, _buffer_sizes);
    float _e6 = a_or_zero(base_3, row_3, k_3 + VECTOR_WORKGROUP, params, a_2, _buffer_sizes);
    float _e12 = a_or_zero(base_3, row_3, k_3 + 256u, params, a_2, _buffer_sizes);
    float _e18 = a_or_zero(base_3, row_3, k_3 + 384u, params, a_2, _buffer_sizes);
    float _e25 = a_or_zero(base_3, row_3, k_3 + 512u, params, a_2, _buffer_sizes);
    float _e31 = a_or_zero(base_3, row_3, k_3 + 640u, params, a_2, _buffer_sizes);
    float _e37 = a_or_zero(base_3, row_3, k_3 + 768u, params, a_2, _buffer_sizes);
    float _e43 = a_or_zero(base_3, row_3, k_3 + 896u, params, a_2, _buffer_sizes);
    return Eight {metal::float4(_e3, _e6, _e12, _e18), metal::float4(_e25, _e31, _e37, _e43)};
}

RowSums hot_eight_k(
    Bases bases,
    uint column,
    uint k_4,
    RowSums sums_1,
    constant Params& params,
    device type_6 const& b_1,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    RowSums next = {};
    Eight _e5 = b_eight(bases.b, column, k_4, params, b_1, _buffer_sizes);
    Eight _e9 = b_eight(bases.b, column + 1u, k_4, params, b_1, _buffer_sizes);
    Eight _e13 = b_eight(bases.b, column + 2u, k_4, params, b_1, _buffer_sizes);
    Eight _e17 = b_eight(bases.b, column + 3u, k_4, params, b_1, _buffer_sizes);
    next = sums_1;
    Eight _e22 = a_eight(bases.a, 0u, k_4, params, a_2, _buffer_sizes);
    metal::float4 _e24 = hot_row(_e22, _e5, _e9, _e13, _e17, sums_1.r0_);
    next.r0_ = _e24;
    if (false) {
        Eight _e32 = a_eight(bases.a, 1u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e34 = hot_row(_e32, _e5, _e9, _e13, _e17, sums_1.r1_);
        next.r1_ = _e34;
    }
    if (false) {
        Eight _e42 = a_eight(bases.a, 2u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e44 = hot_row(_e42, _e5, _e9, _e13, _e17, sums_1.r2_);
        next.r2_ = _e44;
        Eight _e48 = a_eight(bases.a, 3u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e50 = hot_row(_e48, _e5, _e9, _e13, _e17, sums_1.r3_);
        next.r3_ = _e50;
    }
    if (false) {
        Eight _e58 = a_eight(bases.a, 4u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e60 = hot_row(_e58, _e5, _e9, _e13, _e17, sums_1.r4_);
        next.r4_ = _e60;
        Eight _e64 = a_eight(bases.a, 5u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e66 = hot_row(_e64, _e5, _e9, _e13, _e17, sums_1.r5_);
        next.r5_ = _e66;
        Eight _e70 = a_eight(bases.a, 6u, k_4, params, a_2, _buffer_sizes);
        metal::float4 _e72 = hot_row(_e70, _e5, _e9, _e13, _e17, sums_1.r6_);
        next.r6_ = _e72;
        Eight _e76 = a_eight(bases.a, 7u, k_4, params, a_2, _buffer_sizes);
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
    uint k_5 = {};
    k_5 = lane_1;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e12 = k_5;
            k_5 = _e12 + 1024u;
        }
        loop_init = false;
        uint _e7 = k_5;
        if (_e7 < depth) {
        } else {
            break;
        }
        {
            uint _e9 = k_5;
            RowSums _e10 = sums_2;
            RowSums _e11 = hot_eight_k(bases_1, column_1, _e9, _e10, params, b_1, a_2, _buffer_sizes);
            sums_2 = _e11;
        }
    }
    RowSums _e18 = sums_2;
    return _e18;
}

void store_partial(
    uint lane_2,
    uint row_4,
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
        partial.inner[(row_4 * _e8) + _e11] = unnamed;
        return;
    } else {
        return;
    }
}

float c_at(
    uint i_6,
    device type_6 const& c,
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
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_7] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases_2,
    uint row_5,
    uint column_2,
    float sum_1,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_2 = {};
    float y = {};
    uint _e7 = params.size.x;
    if (!((row_5 >= _e7))) {
        uint _e15 = params.size.y;
        local_2 = column_2 >= _e15;
    } else {
        local_2 = true;
    }
    bool _e18 = local_2;
    if (_e18) {
        return;
    }
    float _e22 = params.factors.x;
    y = _e22 * sum_1;
    if (false) {
        uint _e33 = params.places.x;
        uint _e39 = params.places.y;
        uint place = (bases_2.c + (row_5 * _e33)) + (column_2 * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place, c, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases_2.out + (row_5 * _e53)) + (column_2 * _e59), _e62, out, _buffer_sizes);
    return;
}

void finish_four(
    Bases bases_3,
    uint row_6,
    uint column_3,
    metal::float4 sums_4,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish(bases_3, row_6, column_3, sums_4.x, params, c, out, _buffer_sizes);
    finish(bases_3, row_6, column_3 + 1u, sums_4.y, params, c, out, _buffer_sizes);
    finish(bases_3, row_6, column_3 + 2u, sums_4.z, params, c, out, _buffer_sizes);
    finish(bases_3, row_6, column_3 + 3u, sums_4.w, params, c, out, _buffer_sizes);
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
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_3 = {};
    metal::float4 sum_2 = {};
    uint i_8 = 1u;
    RowSums _e5 = row_sums(bases_4, column_4, lane_3, depth_1, params, b_1, a_2, _buffer_sizes);
    store_partial(lane_3, 0u, _e5.r0_, own_subgroup, all_subgroups, leads_subgroup, partial);
    if (false) {
        store_partial(lane_3, 1u, _e5.r1_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    if (false) {
        store_partial(lane_3, 2u, _e5.r2_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 3u, _e5.r3_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    if (false) {
        store_partial(lane_3, 4u, _e5.r4_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 5u, _e5.r5_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 6u, _e5.r6_, own_subgroup, all_subgroups, leads_subgroup, partial);
        store_partial(lane_3, 7u, _e5.r7_, own_subgroup, all_subgroups, leads_subgroup, partial);
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (lane_3 < ROWS) {
        local_3 = writes;
    } else {
        local_3 = false;
    }
    bool _e39 = local_3;
    if (_e39) {
        uint partials = all_subgroups;
        uint first = lane_3 * partials;
        metal::float4 _e45 = partial.inner[first];
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
                metal::float4 _e56 = partial.inner[first + _e53];
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
, device type_6 const& c [[user(fake0)]]
, device type_6& out [[user(fake0)]]
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
