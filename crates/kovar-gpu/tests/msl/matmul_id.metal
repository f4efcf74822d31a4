// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size4;
    uint size5;
    uint size6;
    uint size7;
    uint size8;
};

struct type_1 {
    uint inner[320];
};
struct FourRows {
    metal::uint4 bases;
    uint count;
    char _pad2[12];
};
struct Bases {
    uint a;
    uint b;
    uint c;
    uint out;
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
typedef uint type_6[1];
struct Share {
    bool any;
    bool is_b;
    char _pad2[2];
    uint row;
    uint k;
};
typedef int type_11[1];
struct Block {
    metal::float4 r0_;
    metal::float4 r1_;
    metal::float4 r2_;
    metal::float4 r3_;
};
struct Sums {
    Block near;
    Block right;
    Block below;
    Block far;
};
struct type_12 {
    metal::float4 inner[256];
};
constant uint F8E4M3_ = 3u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint TILE_INVOCATIONS = 256u;
constant uint A_DTYPE = 0u;
constant uint B_DTYPE = 0u;
constant uint ADDEND = 0u;
constant uint C_DTYPE = 0u;
constant uint TILE_GROUPS = 1u;
constant uint TILE_VECTORS = 256u;

metal::uint4 unravel(
    uint i,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i);
    }
    uint z = i / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i - (z * dims.w));
    }
    uint y_1 = z / dims.z;
    uint x = y_1 / dims.y;
    return metal::uint4(x, y_1 - (x * dims.y), z - (y_1 * dims.z), i - (z * dims.w));
}

uint first_expert(
    constant Params& params
) {
    uint _e3 = params.places.x;
    return _e3;
}

uint experts(
    constant Params& params
) {
    uint _e3 = params.size.w;
    return _e3;
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

Bases bases_of_pair(
    uint pair,
    uint expert,
    constant Params& params
) {
    metal::uint4 _e4 = params.batch;
    metal::uint4 _e5 = unravel(pair, _e4);
    uint _e6 = first_expert(params);
    uint _e9 = experts(params);
    uint own = (expert == _e9) ? 0u : (expert - _e6);
    View _e14 = params.a;
    uint _e15 = position(_e14, _e5);
    uint _e19 = params.b.offset;
    uint _e24 = params.b.strides.x;
    View _e30 = params.out;
    uint _e31 = position(_e30, _e5);
    return Bases {_e15, _e19 + (own * _e24), 0u, _e31};
}

uint row_at(
    uint i_1,
    uint rows,
    threadgroup type_1& pairs,
    constant Params& params
) {
    uint _e7 = pairs.inner[metal::min(i_1, rows - 1u)];
    uint _e8 = experts(params);
    Bases _e9 = bases_of_pair(_e7, _e8, params);
    return _e9.a;
}

FourRows four_rows(
    uint i_2,
    uint rows_1,
    threadgroup type_1& pairs,
    constant Params& params
) {
    uint _e2 = row_at(i_2, rows_1, pairs, params);
    uint _e5 = row_at(i_2 + 1u, rows_1, pairs, params);
    uint _e8 = row_at(i_2 + 2u, rows_1, pairs, params);
    uint _e11 = row_at(i_2 + 3u, rows_1, pairs, params);
    metal::uint4 bases_2 = metal::uint4(_e2, _e5, _e8, _e11);
    return FourRows {bases_2, (i_2 < rows_1) ? (rows_1 - i_2) : 0u};
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
    uint i_3,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_3 & 1u) << 4u)) & 65535u;
    if (dtype_1 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

float factor(
    uint word_1,
    uint i_4,
    uint dtype_2
) {
    if (dtype_2 >= F8E4M3_) {
        float _e12 = eight_bits((word_1 >> ((i_4 & 3u) << 3u)) & 255u, dtype_2);
        return _e12;
    }
    float _e13 = decode(word_1, i_4, dtype_2);
    return _e13;
}

uint word_of(
    uint i_5,
    uint dtype_3
) {
    return (dtype_3 == F32_) ? i_5 : (i_5 >> 1u);
}

uint factor_word(
    uint i_6,
    uint dtype_4
) {
    if (dtype_4 >= F8E4M3_) {
        return i_6 >> 2u;
    }
    uint _e6 = word_of(i_6, dtype_4);
    return _e6;
}

float a_element(
    uint i_7,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_7, A_DTYPE);
    uint _e5 = a_2[_e3];
    float _e7 = factor(_e5, i_7, A_DTYPE);
    return _e7;
}

uint a_k_stride(
    constant Params& params
) {
    uint _e3 = params.steps.y;
    return _e3;
}

float a_element_at(
    FourRows four,
    uint i_8,
    uint k_1,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_3 = {};
    if (!((i_8 >= four.count))) {
        uint _e11 = params.size.z;
        local_3 = k_1 >= _e11;
    } else {
        local_3 = true;
    }
    bool _e14 = local_3;
    if (_e14) {
        return 0.0;
    }
    uint _e18 = a_k_stride(params);
    float _e21 = a_element(four.bases[i_8] + (k_1 * _e18), a_2, _buffer_sizes);
    return _e21;
}

metal::float4 a_column_at(
    FourRows four_1,
    uint k_2,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = a_element_at(four_1, 0u, k_2, params, a_2, _buffer_sizes);
    float _e5 = a_element_at(four_1, 1u, k_2, params, a_2, _buffer_sizes);
    float _e7 = a_element_at(four_1, 2u, k_2, params, a_2, _buffer_sizes);
    float _e9 = a_element_at(four_1, 3u, k_2, params, a_2, _buffer_sizes);
    return metal::float4(_e3, _e5, _e7, _e9);
}

metal::float4x4 rows_block(
    FourRows four_2,
    uint k_3,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e2 = a_column_at(four_2, k_3, params, a_2, _buffer_sizes);
    metal::float4 _e5 = a_column_at(four_2, k_3 + 1u, params, a_2, _buffer_sizes);
    metal::float4 _e8 = a_column_at(four_2, k_3 + 2u, params, a_2, _buffer_sizes);
    metal::float4 _e11 = a_column_at(four_2, k_3 + 3u, params, a_2, _buffer_sizes);
    return metal::float4x4(_e2, _e5, _e8, _e11);
}

uint b_rows(
    constant Params& params
) {
    uint _e3 = params.size.y;
    return _e3;
}

float b_element(
    uint i_9,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_9, B_DTYPE);
    uint _e5 = b_2[_e3];
    float _e7 = factor(_e5, i_9, B_DTYPE);
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
    uint k_4,
    constant Params& params,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_4 = {};
    uint _e3 = b_rows(params);
    if (!((row >= _e3))) {
        uint _e11 = params.size.z;
        local_4 = k_4 >= _e11;
    } else {
        local_4 = true;
    }
    bool _e14 = local_4;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = b_row_stride(params);
    uint _e19 = b_k_stride(params);
    float _e22 = b_element((base + (row * _e16)) + (k_4 * _e19), b_2, _buffer_sizes);
    return _e22;
}

metal::float4 b_column(
    uint base_1,
    uint row_1,
    uint k_5,
    constant Params& params,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = b_or_zero(base_1, row_1, k_5, params, b_2, _buffer_sizes);
    float _e6 = b_or_zero(base_1, row_1 + 1u, k_5, params, b_2, _buffer_sizes);
    float _e9 = b_or_zero(base_1, row_1 + 2u, k_5, params, b_2, _buffer_sizes);
    float _e12 = b_or_zero(base_1, row_1 + 3u, k_5, params, b_2, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 b_block(
    uint base_2,
    uint row_2,
    uint k_6,
    constant Params& params,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = b_column(base_2, row_2, k_6, params, b_2, _buffer_sizes);
    metal::float4 _e6 = b_column(base_2, row_2, k_6 + 1u, params, b_2, _buffer_sizes);
    metal::float4 _e9 = b_column(base_2, row_2, k_6 + 2u, params, b_2, _buffer_sizes);
    metal::float4 _e12 = b_column(base_2, row_2, k_6 + 3u, params, b_2, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load(
    uint base_3,
    FourRows four_3,
    uint column,
    Share share,
    uint k_7,
    constant Params& params,
    device type_6 const& a_2,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e13 = b_block(base_3, column + share.row, k_7 + share.k, params, b_2, _buffer_sizes);
        return _e13;
    }
    metal::float4x4 _e16 = rows_block(four_3, k_7 + share.k, params, a_2, _buffer_sizes);
    return _e16;
}

float c_at(
    uint i_10,
    device type_6 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_10, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_10, C_DTYPE);
    return _e7;
}

void put(
    uint i_11,
    float value,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_11] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases,
    uint row_3,
    uint column_1,
    float sum,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_5 = {};
    float y = {};
    uint _e7 = params.size.x;
    if (!((row_3 >= _e7))) {
        uint _e15 = params.size.y;
        local_5 = column_1 >= _e15;
    } else {
        local_5 = true;
    }
    bool _e18 = local_5;
    if (_e18) {
        return;
    }
    float _e22 = params.factors.x;
    y = _e22 * sum;
    if (false) {
        uint _e33 = params.places.x;
        uint _e39 = params.places.y;
        uint place = (bases.c + (row_3 * _e33)) + (column_1 * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place, c, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases.out + (row_3 * _e53)) + (column_1 * _e59), _e62, out, _buffer_sizes);
    return;
}

void finish_four(
    Bases bases_1,
    uint row_4,
    uint column_2,
    metal::float4 sums_1,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish(bases_1, row_4, column_2, sums_1.x, params, c, out, _buffer_sizes);
    finish(bases_1, row_4, column_2 + 1u, sums_1.y, params, c, out, _buffer_sizes);
    finish(bases_1, row_4, column_2 + 2u, sums_1.z, params, c, out, _buffer_sizes);
    finish(bases_1, row_4, column_2 + 3u, sums_1.w, params, c, out, _buffer_sizes);
    return;
}

void finish_row(
    uint row_5,
    uint rows_2,
    uint column_3,
    metal::float4 sums_2,
    threadgroup type_1& pairs,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (row_5 >= rows_2) {
        return;
    }
    uint _e7 = pairs.inner[row_5];
    uint _e8 = experts(params);
    Bases _e9 = bases_of_pair(_e7, _e8, params);
    finish_four(_e9, 0u, column_3, sums_2, params, c, out, _buffer_sizes);
    return;
}

uint tile_span(
) {
    return 64u;
}

uint own_experts(
    constant Params& params
) {
    uint _e3 = params.places.y;
    return _e3;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

Share share_of(
    uint i_12,
    uint row_quads,
    uint k_quads,
    bool a_k_major,
    bool b_k_major
) {
    uint blocks = row_quads * k_quads;
    bool is_b = i_12 >= blocks;
    uint block_2 = is_b ? (i_12 - blocks) : i_12;
    if (is_b ? b_k_major : a_k_major) {
        return Share {i_12 < (2u * blocks), is_b, {}, (block_2 / k_quads) * 4u, (block_2 % k_quads) * 4u};
    }
    return Share {i_12 < (2u * blocks), is_b, {}, (block_2 % row_quads) * 4u, (block_2 / row_quads) * 4u};
}

uint tile_depth(
) {
    return 16u;
}

Share tile_share(
    uint lane_1,
    bool a_k_major_1,
    bool b_k_major_1
) {
    uint _e7 = tile_depth();
    Share _e10 = share_of(lane_1, 16u, _e7 / 4u, a_k_major_1, b_k_major_1);
    return _e10;
}

uint expert_of(
    uint pair_1,
    constant Params& params,
    device type_11 const& ids,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_6 = {};
    View _e4 = params.c;
    metal::uint4 _e7 = params.batch;
    metal::uint4 _e8 = unravel(pair_1, _e7);
    uint _e9 = position(_e4, _e8);
    int id_1 = ids[_e9];
    uint _e12 = experts(params);
    if (id_1 >= 0) {
        uint _e19 = experts(params);
        local_6 = static_cast<uint>(id_1) < _e19;
    } else {
        local_6 = false;
    }
    bool _e22 = local_6;
    return _e22 ? static_cast<uint>(id_1) : _e12;
}

uint tile_place(
    uint quad_,
    uint k_8
) {
    return ((k_8 * 16u) * TILE_GROUPS) + (quad_ ^ (((k_8 >> 2u) & 3u) << 1u));
}

void tile_stage(
    Share share_1,
    metal::float4x4 block_1,
    threadgroup type_12& tile_b,
    threadgroup type_12& tile_a
) {
    if (!(share_1.any)) {
        return;
    }
    uint _e8 = tile_place(share_1.row / 4u, share_1.k);
    if (share_1.is_b) {
        tile_b.inner[_e8] = block_1[0];
        tile_b.inner[_e8 + 16u] = block_1[1];
        tile_b.inner[_e8 + 32u] = block_1[2];
        tile_b.inner[_e8 + 48u] = block_1[3];
        return;
    } else {
        tile_a.inner[_e8] = block_1[0];
        tile_a.inner[_e8 + 16u] = block_1[1];
        tile_a.inner[_e8 + 32u] = block_1[2];
        tile_a.inner[_e8 + 48u] = block_1[3];
        return;
    }
}

Block hot_block(
    Block sums_3,
    metal::float4 a,
    metal::float4 b
) {
    return Block {metal::fma(metal::float4(a.x), b, sums_3.r0_), metal::fma(metal::float4(a.y), b, sums_3.r1_), metal::fma(metal::float4(a.z), b, sums_3.r2_), metal::fma(metal::float4(a.w), b, sums_3.r3_)};
}

Sums hot_k(
    Sums sums_4,
    uint a_1,
    uint b_1,
    threadgroup type_12& tile_b,
    threadgroup type_12& tile_a
) {
    Sums next = {};
    metal::float4 a_near = tile_a.inner[a_1];
    metal::float4 b_near = tile_b.inner[b_1];
    next = sums_4;
    Block _e12 = hot_block(sums_4.near, a_near, b_near);
    next.near = _e12;
    if (false) {
        metal::float4 a_far = tile_a.inner[a_1 + 16u];
        metal::float4 b_far = tile_b.inner[b_1 + 16u];
        Block _e29 = hot_block(sums_4.right, a_near, b_far);
        next.right = _e29;
        Block _e32 = hot_block(sums_4.below, a_far, b_near);
        next.below = _e32;
        Block _e35 = hot_block(sums_4.far, a_far, b_far);
        next.far = _e35;
    }
    Sums _e36 = next;
    return _e36;
}

Sums hot_four_k(
    Sums sums_5,
    uint lane_2,
    uint k_9,
    threadgroup type_12& tile_b,
    threadgroup type_12& tile_a
) {
    Sums next_1 = {};
    uint _e9 = tile_place(lane_2 >> 4u, k_9);
    uint _e12 = tile_place(lane_2 & 15u, k_9);
    Sums _e13 = hot_k(sums_5, _e9, _e12, tile_b, tile_a);
    next_1 = _e13;
    Sums _e15 = next_1;
    Sums _e18 = hot_k(_e15, _e9 + 16u, _e12 + 16u, tile_b, tile_a);
    next_1 = _e18;
    Sums _e19 = next_1;
    Sums _e26 = hot_k(_e19, _e9 + 32u, _e12 + 32u, tile_b, tile_a);
    next_1 = _e26;
    Sums _e27 = next_1;
    Sums _e34 = hot_k(_e27, _e9 + 48u, _e12 + 48u, tile_b, tile_a);
    return _e34;
}

Sums tile_multiply(
    Sums sums_6,
    uint lane_3,
    threadgroup type_12& tile_b,
    threadgroup type_12& tile_a
) {
    Sums next_2 = {};
    uint k_10 = 0u;
    next_2 = sums_6;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e11 = k_10;
            k_10 = _e11 + 4u;
        }
        loop_init = false;
        uint _e5 = k_10;
        uint _e6 = tile_depth();
        if (_e5 < _e6) {
        } else {
            break;
        }
        {
            Sums _e8 = next_2;
            uint _e9 = k_10;
            Sums _e10 = hot_four_k(_e8, lane_3, _e9, tile_b, tile_a);
            next_2 = _e10;
        }
    }
    Sums _e14 = next_2;
    return _e14;
}

struct matmul_idInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void matmul_id(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, threadgroup type_1& pairs
, threadgroup metal::atomic_uint& found
, threadgroup uint& found_now
, constant Params& params [[user(fake0)]]
, device type_6 const& a_2 [[user(fake0)]]
, device type_6 const& b_2 [[user(fake0)]]
, device type_6 const& c [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, device type_11 const& ids [[user(fake0)]]
, threadgroup type_12& tile_b
, threadgroup type_12& tile_a
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint searched = 0u;
    uint kept = 0u;
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    Sums sums = {};
    metal::float4x4 block = {};
    uint k = {};
    uint moved = {};
    uint _e3 = tile_span();
    uint _e7 = params.size.y;
    uint columns = ((_e7 + _e3) - 1u) / _e3;
    uint _e12 = own_experts(params);
    uint _e15 = first_expert(params);
    uint served = _e12 + ((_e15 == 0u) ? 1u : 0u);
    uint _e20 = flat_workgroup(workgroup, workgroups);
    if (_e20 >= (columns * served)) {
        return;
    }
    uint column_4 = (_e20 % columns) * _e3;
    uint own_1 = _e20 / columns;
    uint _e26 = experts(params);
    uint _e27 = first_expert(params);
    uint _e29 = own_experts(params);
    uint expert_1 = (own_1 < _e29) ? (_e27 + own_1) : _e26;
    uint _e36 = params.size.z;
    uint _e37 = own_experts(params);
    uint depth = (own_1 < _e37) ? _e36 : 0u;
    Bases _e41 = bases_of_pair(0u, expert_1, params);
    uint base_4 = _e41.b;
    uint _e46 = params.batch.z;
    uint _e50 = params.batch.w;
    uint all = _e46 * _e50;
    uint _e52 = a_k_stride(params);
    uint _e55 = b_k_stride(params);
    Share _e58 = tile_share(lane, _e52 == 1u, _e55 == 1u);
    while(true) {
        uint _e63 = kept;
        if (!((_e63 > 0u))) {
            uint _e69 = searched;
            local = _e69 < all;
        } else {
            local = true;
        }
        bool _e72 = local;
        if (_e72) {
        } else {
            break;
        }
        {
            while(true) {
                uint _e73 = kept;
                if (_e73 < _e3) {
                    uint _e77 = searched;
                    local_1 = _e77 < all;
                } else {
                    local_1 = false;
                }
                bool _e80 = local_1;
                if (_e80) {
                } else {
                    break;
                }
                {
                    if (lane == 0u) {
                        uint _e84 = kept;
                        metal::atomic_store_explicit(&found, _e84, metal::memory_order_relaxed);
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    uint _e85 = searched;
                    uint pair_2 = _e85 + lane;
                    if (pair_2 < all) {
                        uint _e90 = expert_of(pair_2, params, ids, _buffer_sizes);
                        local_2 = _e90 == expert_1;
                    } else {
                        local_2 = false;
                    }
                    bool _e93 = local_2;
                    if (_e93) {
                        uint _e97 = metal::atomic_fetch_add_explicit(&found, 1u, metal::memory_order_relaxed);
                        pairs.inner[_e97] = pair_2;
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    if (lane == 0u) {
                        uint _e103 = metal::atomic_load_explicit(&found, metal::memory_order_relaxed);
                        found_now = _e103;
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    uint unnamed = found_now;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    kept = unnamed;
                    uint _e106 = searched;
                    searched = _e106 + TILE_INVOCATIONS;
                }
            }
            uint _e109 = kept;
            if (_e109 > 0u) {
                uint _e112 = kept;
                uint rows_3 = metal::min(_e112, _e3);
                FourRows _e115 = four_rows(_e58.row, rows_3, pairs, params);
                sums = Sums {};
                block = metal::float4x4 {};
                if (depth > 0u) {
                    metal::float4x4 _e123 = load(base_4, _e115, column_4, _e58, 0u, params, a_2, b_2, _buffer_sizes);
                    block = _e123;
                }
                k = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e135 = k;
                        uint _e136 = tile_depth();
                        k = _e135 + _e136;
                    }
                    loop_init_1 = false;
                    uint _e126 = k;
                    if (_e126 < depth) {
                    } else {
                        break;
                    }
                    {
                        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        metal::float4x4 _e128 = block;
                        tile_stage(_e58, _e128, tile_b, tile_a);
                        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        uint _e129 = k;
                        uint _e130 = tile_depth();
                        metal::float4x4 _e132 = load(base_4, _e115, column_4, _e58, _e129 + _e130, params, a_2, b_2, _buffer_sizes);
                        block = _e132;
                        Sums _e133 = sums;
                        Sums _e134 = tile_multiply(_e133, lane, tile_b, tile_a);
                        sums = _e134;
                    }
                }
                uint row_6 = (lane >> 4u) * 4u;
                uint first = column_4 + ((lane & 15u) * 4u);
                metal::float4 _e149 = sums.near.r0_;
                finish_row(row_6, rows_3, first, _e149, pairs, params, c, out, _buffer_sizes);
                metal::float4 _e154 = sums.near.r1_;
                finish_row(row_6 + 1u, rows_3, first, _e154, pairs, params, c, out, _buffer_sizes);
                metal::float4 _e159 = sums.near.r2_;
                finish_row(row_6 + 2u, rows_3, first, _e159, pairs, params, c, out, _buffer_sizes);
                metal::float4 _e164 = sums.near.r3_;
                finish_row(row_6 + 3u, rows_3, first, _e164, pairs, params, c, out, _buffer_sizes);
                moved = 0u;
                uint _e168 = kept;
                if ((lane + rows_3) < _e168) {
                    uint _e173 = pairs.inner[lane + rows_3];
                    moved = _e173;
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint _e175 = kept;
                if ((lane + rows_3) < _e175) {
                    uint _e179 = moved;
                    pairs.inner[lane] = _e179;
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint _e180 = kept;
                kept = _e180 - rows_3;
            }
        }
    }
    return;
}
