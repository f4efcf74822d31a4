// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size16;
    uint size17;
};

struct Bases {
    uint a;
    uint b;
    uint c;
    uint out;
};
struct Corner {
    bool inside;
    char _pad1[3];
    uint batch;
    uint row;
    uint column;
};
struct Share {
    bool any;
    bool is_b;
    char _pad2[2];
    uint row;
    uint k;
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
typedef uint type_5[1];
typedef metal::simdgroup_float8x8 MatrixC;
struct type_8 {
    float inner[1280];
};
typedef metal::simdgroup_float8x8 MatrixB;
typedef metal::simdgroup_float8x8 MatrixA;
struct type_9 {
    float inner[512];
};
constant uint F8E4M3_ = 3u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint MATRIX_INVOCATIONS = 256u;
constant uint MATRIX_SPAN = 64u;
constant uint MATRIX = 8u;
constant uint MATRIX_COUNT = 8u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint MATRIX_DEPTH = 16u;
constant uint MATRIX_STRIDE = 20u;
constant uint MATRIX_PLACES = 1280u;
constant uint ADDEND = 0u;
constant uint C_DTYPE = 0u;

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
    uint i_1,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_1 & 1u) << 4u)) & 65535u;
    if (dtype_1 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

float factor(
    uint word_1,
    uint i_2,
    uint dtype_2
) {
    if (dtype_2 >= F8E4M3_) {
        float _e12 = eight_bits((word_1 >> ((i_2 & 3u) << 3u)) & 255u, dtype_2);
        return _e12;
    }
    float _e13 = decode(word_1, i_2, dtype_2);
    return _e13;
}

uint word_of(
    uint i_3,
    uint dtype_3
) {
    return (dtype_3 == F32_) ? i_3 : (i_3 >> 1u);
}

uint factor_word(
    uint i_4,
    uint dtype_4
) {
    if (dtype_4 >= F8E4M3_) {
        return i_4 >> 2u;
    }
    uint _e6 = word_of(i_4, dtype_4);
    return _e6;
}

float b_element(
    uint i_5,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_5, B_DTYPE);
    uint _e5 = b_1[_e3];
    float _e7 = factor(_e5, i_5, B_DTYPE);
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
    uint k_1,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    uint _e3 = b_rows(params);
    if (!((row >= _e3))) {
        uint _e11 = params.size.z;
        local = k_1 >= _e11;
    } else {
        local = true;
    }
    bool _e14 = local;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = b_row_stride(params);
    uint _e19 = b_k_stride(params);
    float _e22 = b_element((base + (row * _e16)) + (k_1 * _e19), b_1, _buffer_sizes);
    return _e22;
}

metal::float4 b_column(
    uint base_1,
    uint row_1,
    uint k_2,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = b_or_zero(base_1, row_1, k_2, params, b_1, _buffer_sizes);
    float _e6 = b_or_zero(base_1, row_1 + 1u, k_2, params, b_1, _buffer_sizes);
    float _e9 = b_or_zero(base_1, row_1 + 2u, k_2, params, b_1, _buffer_sizes);
    float _e12 = b_or_zero(base_1, row_1 + 3u, k_2, params, b_1, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 b_block(
    uint base_2,
    uint row_2,
    uint k_3,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = b_column(base_2, row_2, k_3, params, b_1, _buffer_sizes);
    metal::float4 _e6 = b_column(base_2, row_2, k_3 + 1u, params, b_1, _buffer_sizes);
    metal::float4 _e9 = b_column(base_2, row_2, k_3 + 2u, params, b_1, _buffer_sizes);
    metal::float4 _e12 = b_column(base_2, row_2, k_3 + 3u, params, b_1, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

uint a_rows(
    constant Params& params
) {
    uint _e3 = params.size.x;
    return _e3;
}

float a_element(
    uint i_6,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = factor_word(i_6, A_DTYPE);
    uint _e5 = a_1[_e3];
    float _e7 = factor(_e5, i_6, A_DTYPE);
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
    uint base_3,
    uint row_3,
    uint k_4,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e3 = a_rows(params);
    if (!((row_3 >= _e3))) {
        uint _e11 = params.size.z;
        local_1 = k_4 >= _e11;
    } else {
        local_1 = true;
    }
    bool _e14 = local_1;
    if (_e14) {
        return 0.0;
    }
    uint _e16 = a_row_stride(params);
    uint _e19 = a_k_stride(params);
    float _e22 = a_element((base_3 + (row_3 * _e16)) + (k_4 * _e19), a_1, _buffer_sizes);
    return _e22;
}

metal::float4 a_column(
    uint base_4,
    uint row_4,
    uint k_5,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = a_or_zero(base_4, row_4, k_5, params, a_1, _buffer_sizes);
    float _e6 = a_or_zero(base_4, row_4 + 1u, k_5, params, a_1, _buffer_sizes);
    float _e9 = a_or_zero(base_4, row_4 + 2u, k_5, params, a_1, _buffer_sizes);
    float _e12 = a_or_zero(base_4, row_4 + 3u, k_5, params, a_1, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 a_block(
    uint base_5,
    uint row_5,
    uint k_6,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = a_column(base_5, row_5, k_6, params, a_1, _buffer_sizes);
    metal::float4 _e6 = a_column(base_5, row_5, k_6 + 1u, params, a_1, _buffer_sizes);
    metal::float4 _e9 = a_column(base_5, row_5, k_6 + 2u, params, a_1, _buffer_sizes);
    metal::float4 _e12 = a_column(base_5, row_5, k_6 + 3u, params, a_1, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load_share(
    Bases bases,
    Corner corner,
    Share share,
    uint k_7,
    constant Params& params,
    device type_5 const& b_1,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e14 = b_block(bases.b, corner.column + share.row, k_7 + share.k, params, b_1, _buffer_sizes);
        return _e14;
    }
    metal::float4x4 _e21 = a_block(bases.a, corner.row + share.row, k_7 + share.k, params, a_1, _buffer_sizes);
    return _e21;
}

metal::float4x4 load(
    Bases bases_1,
    Corner corner_1,
    Share share_1,
    uint k_8,
    constant Params& params,
    device type_5 const& b_1,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4x4 _e4 = load_share(bases_1, corner_1, share_1, k_8, params, b_1, a_1, _buffer_sizes);
    return _e4;
}

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

Corner corner_of(
    uint i_7,
    uint span,
    constant Params& params
) {
    uint _e5 = params.size.x;
    uint rows = ((_e5 + span) - 1u) / span;
    uint _e13 = params.size.y;
    uint columns = ((_e13 + span) - 1u) / span;
    metal::uint4 _e21 = params.batch;
    uint _e22 = count_of(_e21);
    return Corner {i_7 < ((rows * columns) * _e22), {}, (i_7 / rows) / columns, (i_7 % rows) * span, ((i_7 / rows) % columns) * span};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

metal::uint4 unravel(
    uint i_8,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_8);
    }
    uint z = i_8 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_8 - (z * dims_1.w));
    }
    uint y_1 = z / dims_1.z;
    uint x = y_1 / dims_1.y;
    return metal::uint4(x, y_1 - (x * dims_1.y), z - (y_1 * dims_1.z), i_8 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
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

void matrix_begin(
    uint lane_1,
    uint subgroup_1,
    uint zero,
    thread uint& matrix_lane,
    thread uint& matrix_subgroup,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_
) {
    matrix_lane = lane_1 & 31u;
    matrix_subgroup = subgroup_1;
    c00_ = MatrixC {};
    c01_ = MatrixC {};
    c10_ = MatrixC {};
    c11_ = MatrixC {};
    c20_ = MatrixC {};
    c21_ = MatrixC {};
    c30_ = MatrixC {};
    c31_ = MatrixC {};
    return;
}

Share share_of(
    uint i_9,
    uint row_quads,
    uint k_quads,
    bool a_k_major,
    bool b_k_major
) {
    uint blocks = row_quads * k_quads;
    bool is_b_1 = i_9 >= blocks;
    uint block_1 = is_b_1 ? (i_9 - blocks) : i_9;
    if (is_b_1 ? b_k_major : a_k_major) {
        return Share {i_9 < (2u * blocks), is_b_1, {}, (block_1 / k_quads) * 4u, (block_1 % k_quads) * 4u};
    }
    return Share {i_9 < (2u * blocks), is_b_1, {}, (block_1 % row_quads) * 4u, (block_1 / row_quads) * 4u};
}

Share matrix_share(
    uint i_10,
    bool a_k_major_1,
    bool b_k_major_1
) {
    Share _e8 = share_of(i_10, 16u, 4u, a_k_major_1, b_k_major_1);
    return _e8;
}

void stage_row(
    bool is_b,
    uint row_6,
    uint k_9,
    metal::float4 four,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    uint place = (row_6 * MATRIX_STRIDE) + k_9;
    if (is_b) {
        matrix_b.inner[place] = four.x;
        matrix_b.inner[place + 1u] = four.y;
        matrix_b.inner[place + 2u] = four.z;
        matrix_b.inner[place + 3u] = four.w;
        return;
    } else {
        matrix_a.inner[place] = four.x;
        matrix_a.inner[place + 1u] = four.y;
        matrix_a.inner[place + 2u] = four.z;
        matrix_a.inner[place + 3u] = four.w;
        return;
    }
}

void matrix_stage(
    Share share_2,
    metal::float4x4 block,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    if (share_2.any) {
        metal::float4x4 rows_1 = metal::transpose(block);
        stage_row(share_2.is_b, share_2.row, share_2.k, rows_1[0], matrix_b, matrix_a);
        stage_row(share_2.is_b, share_2.row + 1u, share_2.k, rows_1[1], matrix_b, matrix_a);
        stage_row(share_2.is_b, share_2.row + 2u, share_2.k, rows_1[2], matrix_b, matrix_a);
        stage_row(share_2.is_b, share_2.row + 3u, share_2.k, rows_1[3], matrix_b, matrix_a);
        return;
    } else {
        return;
    }
}

metal::simdgroup_float8x8 NagaCooperativeLoad(const threadgroup float* ptr, int stride, bool is_row_major) {
    metal::simdgroup_float8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}

MatrixB load_b(
    uint row_7,
    uint k_10,
    threadgroup type_8& matrix_b
) {
    uint place_1 = (row_7 * MATRIX_STRIDE) + k_10;
    return NagaCooperativeLoad(&matrix_b.inner[place_1], MATRIX_STRIDE, true);
}

MatrixA load_a(
    uint row_8,
    uint k_11,
    threadgroup type_8& matrix_a
) {
    uint place_2 = (row_8 * MATRIX_STRIDE) + k_11;
    return NagaCooperativeLoad(&matrix_a.inner[place_2], MATRIX_STRIDE, false);
}

metal::simdgroup_float8x8 NagaCooperativeMultiplyAdd(const thread metal::simdgroup_float8x8& a, const thread metal::simdgroup_float8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}

MatrixC multiply_add(
    MatrixA a,
    MatrixB b,
    MatrixC c
) {
    return NagaCooperativeMultiplyAdd(a, b, c);
}

void hot_matrices(
    uint row_9,
    uint column,
    uint k_12,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    MatrixB _e3 = load_b(column, k_12, matrix_b);
    MatrixB _e6 = load_b(column + MATRIX, k_12, matrix_b);
    MatrixA _e7 = load_a(row_9, k_12, matrix_a);
    MatrixA _e10 = load_a(row_9 + MATRIX, k_12, matrix_a);
    MatrixA _e13 = load_a(row_9 + 16u, k_12, matrix_a);
    MatrixA _e16 = load_a(row_9 + 24u, k_12, matrix_a);
    MatrixC _e19 = c00_;
    MatrixC _e20 = multiply_add(_e7, _e3, _e19);
    c00_ = _e20;
    MatrixC _e23 = c01_;
    MatrixC _e24 = multiply_add(_e7, _e6, _e23);
    c01_ = _e24;
    MatrixC _e27 = c10_;
    MatrixC _e28 = multiply_add(_e10, _e3, _e27);
    c10_ = _e28;
    MatrixC _e31 = c11_;
    MatrixC _e32 = multiply_add(_e10, _e6, _e31);
    c11_ = _e32;
    MatrixC _e35 = c20_;
    MatrixC _e36 = multiply_add(_e13, _e3, _e35);
    c20_ = _e36;
    MatrixC _e39 = c21_;
    MatrixC _e40 = multiply_add(_e13, _e6, _e39);
    c21_ = _e40;
    MatrixC _e43 = c30_;
    MatrixC _e44 = multiply_add(_e16, _e3, _e43);
    c30_ = _e44;
    MatrixC _e47 = c31_;
    MatrixC _e48 = multiply_add(_e16, _e6, _e47);
    c31_ = _e48;
    return;
}

uint matrix_row(
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_subgroup;
    return ((_e1 / 4u) * 4u) * MATRIX;
}

uint matrix_column(
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_subgroup;
    return ((_e1 % 4u) * 2u) * MATRIX;
}

void matrix_multiply(
    thread uint& matrix_subgroup,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    uint k_13 = 0u;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e8 = k_13;
            k_13 = _e8 + MATRIX;
        }
        loop_init = false;
        uint _e2 = k_13;
        if (_e2 < MATRIX_DEPTH) {
        } else {
            break;
        }
        {
            uint _e5 = matrix_row(matrix_subgroup);
            uint _e6 = matrix_column(matrix_subgroup);
            uint _e7 = k_13;
            hot_matrices(_e5, _e6, _e7, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    return;
}

void store_sums(
    MatrixC c_1,
    thread uint& matrix_subgroup,
    threadgroup type_9& matrix_sums
) {
    uint _e2 = matrix_subgroup;
    uint place_3 = (_e2 * MATRIX) * MATRIX;
    simdgroup_store(c_1, &matrix_sums.inner[place_3], MATRIX);
    return;
}

void matrix_store(
    uint i_11,
    thread uint& matrix_subgroup,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_,
    threadgroup type_9& matrix_sums
) {
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    switch(i_11) {
        case 0u: {
            MatrixC _e2 = c00_;
            store_sums(_e2, matrix_subgroup, matrix_sums);
            break;
        }
        case 1u: {
            MatrixC _e4 = c01_;
            store_sums(_e4, matrix_subgroup, matrix_sums);
            break;
        }
        case 2u: {
            MatrixC _e6 = c10_;
            store_sums(_e6, matrix_subgroup, matrix_sums);
            break;
        }
        case 3u: {
            MatrixC _e8 = c11_;
            store_sums(_e8, matrix_subgroup, matrix_sums);
            break;
        }
        case 4u: {
            MatrixC _e10 = c20_;
            store_sums(_e10, matrix_subgroup, matrix_sums);
            break;
        }
        case 5u: {
            MatrixC _e12 = c21_;
            store_sums(_e12, matrix_subgroup, matrix_sums);
            break;
        }
        case 6u: {
            MatrixC _e14 = c30_;
            store_sums(_e14, matrix_subgroup, matrix_sums);
            break;
        }
        default: {
            MatrixC _e16 = c31_;
            store_sums(_e16, matrix_subgroup, matrix_sums);
            break;
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}

uint matrix_row_of(
    uint i_12,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_row(matrix_subgroup);
    return _e1 + ((i_12 / 2u) * MATRIX);
}

uint matrix_column_of(
    uint i_13,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_column(matrix_subgroup);
    return _e1 + ((i_13 % 2u) * MATRIX);
}

float matrix_sum(
    uint row_10,
    uint column_1,
    thread uint& matrix_subgroup,
    threadgroup type_9& matrix_sums
) {
    uint _e3 = matrix_subgroup;
    uint place_4 = (((_e3 * MATRIX) + row_10) * MATRIX) + column_1;
    float _e12 = matrix_sums.inner[place_4];
    return _e12;
}

float c_at(
    uint i_14,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_14, C_DTYPE);
    uint _e5 = c_2[_e3];
    float _e7 = decode(_e5, i_14, C_DTYPE);
    return _e7;
}

void put(
    uint i_15,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_15] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases_2,
    uint row_11,
    uint column_2,
    float sum,
    constant Params& params,
    device type_5 const& c_2,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_2 = {};
    float y = {};
    uint _e7 = params.size.x;
    if (!((row_11 >= _e7))) {
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
    y = _e22 * sum;
    if (false) {
        uint _e33 = params.places.x;
        uint _e39 = params.places.y;
        uint place_5 = (bases_2.c + (row_11 * _e33)) + (column_2 * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place_5, c_2, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases_2.out + (row_11 * _e53)) + (column_2 * _e59), _e62, out, _buffer_sizes);
    return;
}

struct product_matrixInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void product_matrix(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& b_1 [[user(fake0)]]
, device type_5 const& a_1 [[user(fake0)]]
, threadgroup type_8& matrix_b
, threadgroup type_8& matrix_a
, threadgroup type_9& matrix_sums
, device type_5 const& c_2 [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint matrix_lane = {};
    uint matrix_subgroup = {};
    MatrixC c00_ = {};
    MatrixC c01_ = {};
    MatrixC c10_ = {};
    MatrixC c11_ = {};
    MatrixC c20_ = {};
    MatrixC c21_ = {};
    MatrixC c30_ = {};
    MatrixC c31_ = {};
    metal::float4x4 first_block = {};
    metal::float4x4 second_block = {};
    uint k = 0u;
    uint i = 0u;
    uint at = {};
    uint _e4 = flat_workgroup(workgroup, workgroups);
    Corner _e6 = corner_of(_e4, MATRIX_SPAN, params);
    if (!(_e6.inside)) {
        return;
    }
    Bases _e10 = bases_of(_e6.batch, params);
    uint _e14 = params.size.w;
    matrix_begin(lane, subgroup, _e14, matrix_lane, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_);
    uint _e15 = a_k_stride(params);
    bool a_k_major_2 = _e15 == 1u;
    uint _e18 = b_k_stride(params);
    bool b_k_major_2 = _e18 == 1u;
    Share _e21 = matrix_share(lane, a_k_major_2, b_k_major_2);
    Share _e24 = matrix_share(lane + MATRIX_INVOCATIONS, a_k_major_2, b_k_major_2);
    metal::float4x4 _e26 = load(_e10, _e6, _e21, 0u, params, b_1, a_1, _buffer_sizes);
    first_block = _e26;
    metal::float4x4 _e29 = load(_e10, _e6, _e24, 0u, params, b_1, a_1, _buffer_sizes);
    second_block = _e29;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e49 = k;
            k = _e49 + MATRIX_DEPTH;
        }
        loop_init_1 = false;
        uint _e33 = k;
        uint _e37 = params.size.z;
        if (_e33 < _e37) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e39 = first_block;
            matrix_stage(_e21, _e39, matrix_b, matrix_a);
            metal::float4x4 _e40 = second_block;
            matrix_stage(_e24, _e40, matrix_b, matrix_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e41 = k;
            metal::float4x4 _e44 = load(_e10, _e6, _e21, _e41 + MATRIX_DEPTH, params, b_1, a_1, _buffer_sizes);
            first_block = _e44;
            uint _e45 = k;
            metal::float4x4 _e48 = load(_e10, _e6, _e24, _e45 + MATRIX_DEPTH, params, b_1, a_1, _buffer_sizes);
            second_block = _e48;
            matrix_multiply(matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e91 = i;
            i = _e91 + 1u;
        }
        loop_init_2 = false;
        uint _e54 = i;
        if (_e54 < MATRIX_COUNT) {
        } else {
            break;
        }
        {
            uint _e57 = i;
            matrix_store(_e57, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_sums);
            uint _e59 = i;
            uint _e60 = matrix_row_of(_e59, matrix_subgroup);
            uint row_12 = _e6.row + _e60;
            uint _e63 = i;
            uint _e64 = matrix_column_of(_e63, matrix_subgroup);
            uint column_3 = _e6.column + _e64;
            at = lane & 31u;
            bool loop_init_3 = true;
            while(true) {
                if (!loop_init_3) {
                    uint _e87 = at;
                    at = _e87 + 32u;
                }
                loop_init_3 = false;
                uint _e69 = at;
                if (_e69 < 64u) {
                } else {
                    break;
                }
                {
                    uint _e72 = at;
                    uint _e75 = at;
                    float _e78 = matrix_sum(_e72 / MATRIX, _e75 % MATRIX, matrix_subgroup, matrix_sums);
                    uint _e79 = at;
                    uint _e83 = at;
                    finish(_e10, row_12 + (_e79 / MATRIX), column_3 + (_e83 % MATRIX), _e78, params, c_2, out, _buffer_sizes);
                }
            }
        }
    }
    return;
}
