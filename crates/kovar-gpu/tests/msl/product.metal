// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size5;
    uint size6;
};

struct Corner {
    bool inside;
    char _pad1[3];
    uint batch;
    uint row;
    uint column;
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
struct Share {
    bool any;
    bool is_b;
    char _pad2[2];
    uint row;
    uint k;
};
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
typedef uint type_6[1];
struct type_8 {
    metal::float4 inner[512];
};
constant uint TILE_INVOCATIONS = 256u;
constant uint F8E4M3_ = 3u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint TILE_GROUPS = 1u;
constant uint TILE_VECTORS = 512u;
constant uint B_DTYPE = 1u;
constant uint A_DTYPE = 0u;
constant uint ADDEND = 1u;
constant uint C_DTYPE = 0u;

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

Corner corner_of(
    uint i,
    uint span,
    constant Params& params
) {
    uint _e5 = params.size.x;
    uint rows = ((_e5 + span) - 1u) / span;
    uint _e13 = params.size.y;
    uint columns = ((_e13 + span) - 1u) / span;
    metal::uint4 _e21 = params.batch;
    uint _e22 = count_of(_e21);
    return Corner {i < ((rows * columns) * _e22), {}, (i / rows) / columns, (i % rows) * span, ((i / rows) % columns) * span};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

uint tile_span(
) {
    return 64u;
}

Share share_of(
    uint i_1,
    uint row_quads,
    uint k_quads,
    bool a_k_major,
    bool b_k_major
) {
    uint blocks = row_quads * k_quads;
    bool is_b = i_1 >= blocks;
    uint block_2 = is_b ? (i_1 - blocks) : i_1;
    if (is_b ? b_k_major : a_k_major) {
        return Share {i_1 < (2u * blocks), is_b, {}, (block_2 / k_quads) * 4u, (block_2 % k_quads) * 4u};
    }
    return Share {i_1 < (2u * blocks), is_b, {}, (block_2 % row_quads) * 4u, (block_2 / row_quads) * 4u};
}

uint tile_depth(
) {
    return 32u;
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

uint a_k_stride(
    constant Params& params
) {
    uint _e3 = params.steps.y;
    return _e3;
}

uint b_k_stride(
    constant Params& params
) {
    uint _e3 = params.steps.w;
    return _e3;
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
    uint i_2,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_2 & 1u) << 4u)) & 65535u;
    if (dtype_1 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

float factor(
    uint word_1,
    uint i_3,
    uint dtype_2
) {
    if (dtype_2 >= F8E4M3_) {
        float _e12 = eight_bits((word_1 >> ((i_3 & 3u) << 3u)) & 255u, dtype_2);
        return _e12;
    }
    float _e13 = decode(word_1, i_3, dtype_2);
    return _e13;
}

uint word_of(
    uint i_4,
    uint dtype_3
) {
    return (dtype_3 == F32_) ? i_4 : (i_4 >> 1u);
}

uint factor_word(
    uint i_5,
    uint dtype_4
) {
    if (dtype_4 >= F8E4M3_) {
        return i_5 >> 2u;
    }
    uint _e6 = word_of(i_5, dtype_4);
    return _e6;
}

float b_element(
    uint i_6,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_6, B_DTYPE);
    uint _e5 = b_2[_e3];
    float _e7 = factor(_e5, i_6, B_DTYPE);
    return _e7;
}

uint b_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.z;
    return _e3;
}

float b_or_zero(
    uint base,
    uint row,
    uint k,
    constant Params& params,
    device type_6 const& b_2,
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
    float _e22 = b_element((base + (row * _e16)) + (k * _e19), b_2, _buffer_sizes);
    return _e22;
}

metal::float4 b_column(
    uint base_1,
    uint row_1,
    uint k_1,
    constant Params& params,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = b_or_zero(base_1, row_1, k_1, params, b_2, _buffer_sizes);
    float _e6 = b_or_zero(base_1, row_1 + 1u, k_1, params, b_2, _buffer_sizes);
    float _e9 = b_or_zero(base_1, row_1 + 2u, k_1, params, b_2, _buffer_sizes);
    float _e12 = b_or_zero(base_1, row_1 + 3u, k_1, params, b_2, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 b_block(
    uint base_2,
    uint row_2,
    uint k_2,
    constant Params& params,
    device type_6 const& b_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = b_column(base_2, row_2, k_2, params, b_2, _buffer_sizes);
    metal::float4 _e6 = b_column(base_2, row_2, k_2 + 1u, params, b_2, _buffer_sizes);
    metal::float4 _e9 = b_column(base_2, row_2, k_2 + 2u, params, b_2, _buffer_sizes);
    metal::float4 _e12 = b_column(base_2, row_2, k_2 + 3u, params, b_2, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

uint a_rows(
    constant Params& params
) {
    uint _e3 = params.size.x;
    return _e3;
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

uint a_row_stride(
    constant Params& params
) {
    uint _e3 = params.steps.x;
    return _e3;
}

float a_or_zero(
    uint base_3,
    uint row_3,
    uint k_3,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e3 = a_rows(params);
    if (!((row_3 >= _e3))) {
        uint _e11 = params.size.z;
        local_1 = k_3 >= _e11;
    } else {
        local_1 = true;
    }
    bool _e14 = local_1;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = a_row_stride(params);
    uint _e19 = a_k_stride(params);
    float _e22 = a_element((base_3 + (row_3 * _e16)) + (k_3 * _e19), a_2, _buffer_sizes);
    return _e22;
}

metal::float4 a_column(
    uint base_4,
    uint row_4,
    uint k_4,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = a_or_zero(base_4, row_4, k_4, params, a_2, _buffer_sizes);
    float _e6 = a_or_zero(base_4, row_4 + 1u, k_4, params, a_2, _buffer_sizes);
    float _e9 = a_or_zero(base_4, row_4 + 2u, k_4, params, a_2, _buffer_sizes);
    float _e12 = a_or_zero(base_4, row_4 + 3u, k_4, params, a_2, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 a_block(
    uint base_5,
    uint row_5,
    uint k_5,
    constant Params& params,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = a_column(base_5, row_5, k_5, params, a_2, _buffer_sizes);
    metal::float4 _e6 = a_column(base_5, row_5, k_5 + 1u, params, a_2, _buffer_sizes);
    metal::float4 _e9 = a_column(base_5, row_5, k_5 + 2u, params, a_2, _buffer_sizes);
    metal::float4 _e12 = a_column(base_5, row_5, k_5 + 3u, params, a_2, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load_share(
    Bases bases,
    Corner corner,
    Share share,
    uint k_6,
    constant Params& params,
    device type_6 const& b_2,
    device type_6 const& a_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e14 = b_block(bases.b, corner.column + share.row, k_6 + share.k, params, b_2, _buffer_sizes);
        return _e14;
    }
    metal::float4x4 _e21 = a_block(bases.a, corner.row + share.row, k_6 + share.k, params, a_2, _buffer_sizes);
    return _e21;
}

uint tile_place(
    uint quad_,
    uint k_7
) {
    return ((k_7 * 16u) * TILE_GROUPS) + (quad_ ^ (((k_7 >> 2u) & 3u) << 1u));
}

void tile_stage(
    Share share_1,
    metal::float4x4 block,
    threadgroup type_8& tile_b,
    threadgroup type_8& tile_a
) {
    if (!(share_1.any)) {
        return;
    }
    uint _e8 = tile_place(share_1.row / 4u, share_1.k);
    if (share_1.is_b) {
        tile_b.inner[_e8] = block[0];
        tile_b.inner[_e8 + 16u] = block[1];
        tile_b.inner[_e8 + 32u] = block[2];
        tile_b.inner[_e8 + 48u] = block[3];
        return;
    } else {
        tile_a.inner[_e8] = block[0];
        tile_a.inner[_e8 + 16u] = block[1];
        tile_a.inner[_e8 + 32u] = block[2];
        tile_a.inner[_e8 + 48u] = block[3];
        return;
    }
}

Block hot_block(
    Block sums,
    metal::float4 a,
    metal::float4 b
) {
    return Block {metal::fma(metal::float4(a.x), b, sums.r0_), metal::fma(metal::float4(a.y), b, sums.r1_), metal::fma(metal::float4(a.z), b, sums.r2_), metal::fma(metal::float4(a.w), b, sums.r3_)};
}

Sums hot_k(
    Sums sums_1,
    uint a_1,
    uint b_1,
    threadgroup type_8& tile_b,
    threadgroup type_8& tile_a
) {
    Sums next = {};
    metal::float4 a_near = tile_a.inner[a_1];
    metal::float4 b_near = tile_b.inner[b_1];
    next = sums_1;
    Block _e12 = hot_block(sums_1.near, a_near, b_near);
    next.near = _e12;
    if (false) {
        metal::float4 a_far = tile_a.inner[a_1 + 16u];
        metal::float4 b_far = tile_b.inner[b_1 + 16u];
        Block _e29 = hot_block(sums_1.right, a_near, b_far);
        next.right = _e29;
        Block _e32 = hot_block(sums_1.below, a_far, b_near);
        next.below = _e32;
        Block _e35 = hot_block(sums_1.far, a_far, b_far);
        next.far = _e35;
    }
    Sums _e36 = next;
    return _e36;
}

Sums hot_four_k(
    Sums sums_2,
    uint lane_2,
    uint k_8,
    threadgroup type_8& tile_b,
    threadgroup type_8& tile_a
) {
    Sums next_1 = {};
    uint _e9 = tile_place(lane_2 >> 4u, k_8);
    uint _e12 = tile_place(lane_2 & 15u, k_8);
    Sums _e13 = hot_k(sums_2, _e9, _e12, tile_b, tile_a);
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
    Sums sums_3,
    uint lane_3,
    threadgroup type_8& tile_b,
    threadgroup type_8& tile_a
) {
    Sums next_2 = {};
    uint k_9 = 0u;
    next_2 = sums_3;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e11 = k_9;
            k_9 = _e11 + 4u;
        }
        loop_init = false;
        uint _e5 = k_9;
        uint _e6 = tile_depth();
        if (_e5 < _e6) {
        } else {
            break;
        }
        {
            Sums _e8 = next_2;
            uint _e9 = k_9;
            Sums _e10 = hot_four_k(_e8, lane_3, _e9, tile_b, tile_a);
            next_2 = _e10;
        }
    }
    Sums _e14 = next_2;
    return _e14;
}

float c_at(
    uint i_8,
    device type_6 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_8, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_8, C_DTYPE);
    return _e7;
}

void put(
    uint i_9,
    float value,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_9] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases_1,
    uint row_6,
    uint column,
    float sum,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_2 = {};
    float y = {};
    uint _e7 = params.size.x;
    if (!((row_6 >= _e7))) {
        uint _e15 = params.size.y;
        local_2 = column >= _e15;
    } else {
        local_2 = true;
    }
    bool _e18 = local_2;
    if (_e18) {
        return;
    }
    float _e22 = params.factors.x;
    y = _e22 * sum;
    if (true) {
        uint _e33 = params.places.x;
        uint _e39 = params.places.y;
        uint place = (bases_1.c + (row_6 * _e33)) + (column * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place, c, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases_1.out + (row_6 * _e53)) + (column * _e59), _e62, out, _buffer_sizes);
    return;
}

void finish_four(
    Bases bases_2,
    uint row_7,
    uint column_1,
    metal::float4 sums_4,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish(bases_2, row_7, column_1, sums_4.x, params, c, out, _buffer_sizes);
    finish(bases_2, row_7, column_1 + 1u, sums_4.y, params, c, out, _buffer_sizes);
    finish(bases_2, row_7, column_1 + 2u, sums_4.z, params, c, out, _buffer_sizes);
    finish(bases_2, row_7, column_1 + 3u, sums_4.w, params, c, out, _buffer_sizes);
    return;
}

void finish_block(
    Bases bases_3,
    uint row_8,
    uint column_2,
    Block sums_5,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish_four(bases_3, row_8, column_2, sums_5.r0_, params, c, out, _buffer_sizes);
    finish_four(bases_3, row_8 + 1u, column_2, sums_5.r1_, params, c, out, _buffer_sizes);
    finish_four(bases_3, row_8 + 2u, column_2, sums_5.r2_, params, c, out, _buffer_sizes);
    finish_four(bases_3, row_8 + 3u, column_2, sums_5.r3_, params, c, out, _buffer_sizes);
    return;
}

void tiled_product(
    Bases bases_4,
    Corner corner_1,
    uint lane_4,
    constant Params& params,
    device type_6 const& b_2,
    device type_6 const& a_2,
    threadgroup type_8& tile_b,
    threadgroup type_8& tile_a,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    Sums sums_6 = Sums {};
    metal::float4x4 block_1 = {};
    uint k_10 = 0u;
    uint _e3 = a_k_stride(params);
    uint _e6 = b_k_stride(params);
    Share _e9 = tile_share(lane_4, _e3 == 1u, _e6 == 1u);
    metal::float4x4 _e13 = load_share(bases_4, corner_1, _e9, 0u, params, b_2, a_2, _buffer_sizes);
    block_1 = _e13;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e30 = k_10;
            uint _e31 = tile_depth();
            k_10 = _e30 + _e31;
        }
        loop_init_1 = false;
        uint _e17 = k_10;
        uint _e21 = params.size.z;
        if (_e17 < _e21) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e23 = block_1;
            tile_stage(_e9, _e23, tile_b, tile_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e24 = k_10;
            uint _e25 = tile_depth();
            metal::float4x4 _e27 = load_share(bases_4, corner_1, _e9, _e24 + _e25, params, b_2, a_2, _buffer_sizes);
            block_1 = _e27;
            Sums _e28 = sums_6;
            Sums _e29 = tile_multiply(_e28, lane_4, tile_b, tile_a);
            sums_6 = _e29;
        }
    }
    uint row_9 = corner_1.row + ((lane_4 >> 4u) * 4u);
    uint column_3 = corner_1.column + ((lane_4 & 15u) * 4u);
    Block _e46 = sums_6.near;
    finish_block(bases_4, row_9, column_3, _e46, params, c, out, _buffer_sizes);
    if (false) {
        Block _e54 = sums_6.right;
        finish_block(bases_4, row_9, column_3 + 64u, _e54, params, c, out, _buffer_sizes);
        Block _e58 = sums_6.below;
        finish_block(bases_4, row_9 + 64u, column_3, _e58, params, c, out, _buffer_sizes);
        Block _e64 = sums_6.far;
        finish_block(bases_4, row_9 + 64u, column_3 + 64u, _e64, params, c, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}

metal::uint4 unravel(
    uint i_10,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_10);
    }
    uint z = i_10 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_10 - (z * dims_1.w));
    }
    uint y_1 = z / dims_1.z;
    uint x = y_1 / dims_1.y;
    return metal::uint4(x, y_1 - (x * dims_1.y), z - (y_1 * dims_1.z), i_10 - (z * dims_1.w));
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

struct productInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void product(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_6 const& b_2 [[user(fake0)]]
, device type_6 const& a_2 [[user(fake0)]]
, threadgroup type_8& tile_b
, threadgroup type_8& tile_a
, device type_6 const& c [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint _e4 = tile_span();
    Corner _e5 = corner_of(_e3, _e4, params);
    if (_e5.inside) {
        Bases _e8 = bases_of(_e5.batch, params);
        tiled_product(_e8, _e5, lane, params, b_2, a_2, tile_b, tile_a, c, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}
