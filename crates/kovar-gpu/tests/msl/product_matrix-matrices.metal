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
    uint row;
    uint column;
};
struct MatrixShare {
    bool any;
    bool is_b;
    char _pad2[2];
    uint line;
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

float b_term(
    uint base,
    uint line,
    uint k_1,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    uint _e6 = params.size.y;
    if (!((line >= _e6))) {
        uint _e14 = params.size.z;
        local = k_1 >= _e14;
    } else {
        local = true;
    }
    bool _e17 = local;
    if (_e17) {
        return 0.0;
    }
    uint _e22 = params.steps.z;
    uint _e28 = params.steps.w;
    float _e31 = b_element((base + (line * _e22)) + (k_1 * _e28), b_1, _buffer_sizes);
    return _e31;
}

metal::float4 b_lines(
    uint base_1,
    uint line_1,
    uint k_2,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = b_term(base_1, line_1, k_2, params, b_1, _buffer_sizes);
    float _e6 = b_term(base_1, line_1 + 1u, k_2, params, b_1, _buffer_sizes);
    float _e9 = b_term(base_1, line_1 + 2u, k_2, params, b_1, _buffer_sizes);
    float _e12 = b_term(base_1, line_1 + 3u, k_2, params, b_1, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 b_block(
    uint base_2,
    uint line_2,
    uint k_3,
    constant Params& params,
    device type_5 const& b_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = b_lines(base_2, line_2, k_3, params, b_1, _buffer_sizes);
    metal::float4 _e6 = b_lines(base_2, line_2, k_3 + 1u, params, b_1, _buffer_sizes);
    metal::float4 _e9 = b_lines(base_2, line_2, k_3 + 2u, params, b_1, _buffer_sizes);
    metal::float4 _e12 = b_lines(base_2, line_2, k_3 + 3u, params, b_1, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
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

float a_term(
    uint base_3,
    uint line_3,
    uint k_4,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e6 = params.size.x;
    if (!((line_3 >= _e6))) {
        uint _e14 = params.size.z;
        local_1 = k_4 >= _e14;
    } else {
        local_1 = true;
    }
    bool _e17 = local_1;
    if (_e17) {
        return 0.0;
    }
    uint _e22 = params.steps.x;
    uint _e28 = params.steps.y;
    float _e31 = a_element((base_3 + (line_3 * _e22)) + (k_4 * _e28), a_1, _buffer_sizes);
    return _e31;
}

metal::float4 a_lines(
    uint base_4,
    uint line_4,
    uint k_5,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = a_term(base_4, line_4, k_5, params, a_1, _buffer_sizes);
    float _e6 = a_term(base_4, line_4 + 1u, k_5, params, a_1, _buffer_sizes);
    float _e9 = a_term(base_4, line_4 + 2u, k_5, params, a_1, _buffer_sizes);
    float _e12 = a_term(base_4, line_4 + 3u, k_5, params, a_1, _buffer_sizes);
    return metal::float4(_e3, _e6, _e9, _e12);
}

metal::float4x4 a_block(
    uint base_5,
    uint line_5,
    uint k_6,
    constant Params& params,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = a_lines(base_5, line_5, k_6, params, a_1, _buffer_sizes);
    metal::float4 _e6 = a_lines(base_5, line_5, k_6 + 1u, params, a_1, _buffer_sizes);
    metal::float4 _e9 = a_lines(base_5, line_5, k_6 + 2u, params, a_1, _buffer_sizes);
    metal::float4 _e12 = a_lines(base_5, line_5, k_6 + 3u, params, a_1, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load(
    Bases bases,
    Corner corner,
    MatrixShare share,
    uint k_7,
    constant Params& params,
    device type_5 const& b_1,
    device type_5 const& a_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4x4 block = metal::float4x4 {};
    if (share.any) {
        if (share.is_b) {
            metal::float4x4 _e14 = b_block(bases.b, corner.column + share.line, k_7 + share.k, params, b_1, _buffer_sizes);
            block = _e14;
        } else {
            metal::float4x4 _e21 = a_block(bases.a, corner.row + share.line, k_7 + share.k, params, a_1, _buffer_sizes);
            block = _e21;
        }
    }
    metal::float4x4 _e22 = block;
    return _e22;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

metal::uint4 unravel(
    uint i_7,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_7);
    }
    uint z = i_7 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_7 - (z * dims.w));
    }
    uint y_1 = z / dims.z;
    uint x = y_1 / dims.y;
    return metal::uint4(x, y_1 - (x * dims.y), z - (y_1 * dims.z), i_7 - (z * dims.w));
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

MatrixShare matrix_share(
    uint i_8,
    bool a_along_k,
    bool b_along_k
) {
    bool is_b_1 = i_8 >= 64u;
    uint block_2 = is_b_1 ? (i_8 - 64u) : i_8;
    if (is_b_1 ? b_along_k : a_along_k) {
        return MatrixShare {i_8 < 128u, is_b_1, {}, (block_2 / 4u) * 4u, (block_2 % 4u) * 4u};
    }
    return MatrixShare {i_8 < 128u, is_b_1, {}, (block_2 % 16u) * 4u, (block_2 / 16u) * 4u};
}

void stage_line(
    bool is_b,
    uint line_6,
    uint k_8,
    metal::float4 terms,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    uint place = (line_6 * MATRIX_STRIDE) + k_8;
    if (is_b) {
        matrix_b.inner[place] = terms.x;
        matrix_b.inner[place + 1u] = terms.y;
        matrix_b.inner[place + 2u] = terms.z;
        matrix_b.inner[place + 3u] = terms.w;
        return;
    } else {
        matrix_a.inner[place] = terms.x;
        matrix_a.inner[place + 1u] = terms.y;
        matrix_a.inner[place + 2u] = terms.z;
        matrix_a.inner[place + 3u] = terms.w;
        return;
    }
}

void matrix_stage(
    MatrixShare share_1,
    metal::float4x4 block_1,
    threadgroup type_8& matrix_b,
    threadgroup type_8& matrix_a
) {
    if (share_1.any) {
        metal::float4x4 lines = metal::transpose(block_1);
        stage_line(share_1.is_b, share_1.line, share_1.k, lines[0], matrix_b, matrix_a);
        stage_line(share_1.is_b, share_1.line + 1u, share_1.k, lines[1], matrix_b, matrix_a);
        stage_line(share_1.is_b, share_1.line + 2u, share_1.k, lines[2], matrix_b, matrix_a);
        stage_line(share_1.is_b, share_1.line + 3u, share_1.k, lines[3], matrix_b, matrix_a);
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
    uint line_7,
    uint k_9,
    threadgroup type_8& matrix_b
) {
    uint place_1 = (line_7 * MATRIX_STRIDE) + k_9;
    return NagaCooperativeLoad(&matrix_b.inner[place_1], MATRIX_STRIDE, true);
}

MatrixA load_a(
    uint line_8,
    uint k_10,
    threadgroup type_8& matrix_a
) {
    uint place_2 = (line_8 * MATRIX_STRIDE) + k_10;
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
    uint row,
    uint column,
    uint k_11,
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
    MatrixB _e3 = load_b(column, k_11, matrix_b);
    MatrixB _e6 = load_b(column + MATRIX, k_11, matrix_b);
    MatrixA _e7 = load_a(row, k_11, matrix_a);
    MatrixA _e10 = load_a(row + MATRIX, k_11, matrix_a);
    MatrixA _e13 = load_a(row + 16u, k_11, matrix_a);
    MatrixA _e16 = load_a(row + 24u, k_11, matrix_a);
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
    uint k_12 = 0u;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e8 = k_12;
            k_12 = _e8 + MATRIX;
        }
        loop_init = false;
        uint _e2 = k_12;
        if (_e2 < MATRIX_DEPTH) {
        } else {
            break;
        }
        {
            uint _e5 = matrix_row(matrix_subgroup);
            uint _e6 = matrix_column(matrix_subgroup);
            uint _e7 = k_12;
            hot_matrices(_e5, _e6, _e7, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    return;
}

void leave_sums(
    MatrixC c_1,
    thread uint& matrix_subgroup,
    threadgroup type_9& matrix_sums
) {
    uint _e2 = matrix_subgroup;
    uint place_3 = (_e2 * MATRIX) * MATRIX;
    simdgroup_store(c_1, &matrix_sums.inner[place_3], MATRIX);
    return;
}

void matrix_leave(
    uint i_9,
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
    switch(i_9) {
        case 0u: {
            MatrixC _e2 = c00_;
            leave_sums(_e2, matrix_subgroup, matrix_sums);
            break;
        }
        case 1u: {
            MatrixC _e4 = c01_;
            leave_sums(_e4, matrix_subgroup, matrix_sums);
            break;
        }
        case 2u: {
            MatrixC _e6 = c10_;
            leave_sums(_e6, matrix_subgroup, matrix_sums);
            break;
        }
        case 3u: {
            MatrixC _e8 = c11_;
            leave_sums(_e8, matrix_subgroup, matrix_sums);
            break;
        }
        case 4u: {
            MatrixC _e10 = c20_;
            leave_sums(_e10, matrix_subgroup, matrix_sums);
            break;
        }
        case 5u: {
            MatrixC _e12 = c21_;
            leave_sums(_e12, matrix_subgroup, matrix_sums);
            break;
        }
        case 6u: {
            MatrixC _e14 = c30_;
            leave_sums(_e14, matrix_subgroup, matrix_sums);
            break;
        }
        default: {
            MatrixC _e16 = c31_;
            leave_sums(_e16, matrix_subgroup, matrix_sums);
            break;
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}

uint matrix_row_of(
    uint i_10,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_row(matrix_subgroup);
    return _e1 + ((i_10 / 2u) * MATRIX);
}

uint matrix_column_of(
    uint i_11,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_column(matrix_subgroup);
    return _e1 + ((i_11 % 2u) * MATRIX);
}

float matrix_sum(
    uint row_1,
    uint column_1,
    thread uint& matrix_subgroup,
    threadgroup type_9& matrix_sums
) {
    uint _e3 = matrix_subgroup;
    uint place_4 = (((_e3 * MATRIX) + row_1) * MATRIX) + column_1;
    float _e12 = matrix_sums.inner[place_4];
    return _e12;
}

float c_at(
    uint i_12,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_12, C_DTYPE);
    uint _e5 = c_2[_e3];
    float _e7 = decode(_e5, i_12, C_DTYPE);
    return _e7;
}

void put(
    uint i_13,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_13] = as_type<uint>(value);
    return;
}

void finish(
    Bases bases_1,
    uint row_2,
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
    if (!((row_2 >= _e7))) {
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
        uint place_5 = (bases_1.c + (row_2 * _e33)) + (column_2 * _e39);
        float _e45 = params.factors.y;
        float _e46 = c_at(place_5, c_2, _buffer_sizes);
        float _e47 = y;
        y = metal::fma(_e45, _e46, _e47);
    }
    uint _e53 = params.places.z;
    uint _e59 = params.places.w;
    float _e62 = y;
    put((bases_1.out + (row_2 * _e53)) + (column_2 * _e59), _e62, out, _buffer_sizes);
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
    metal::uint4 size = params.size;
    uint rows = ((size.x + MATRIX_SPAN) - 1u) / MATRIX_SPAN;
    uint columns = ((size.y + MATRIX_SPAN) - 1u) / MATRIX_SPAN;
    uint _e21 = params.batch.x;
    uint _e25 = params.batch.y;
    uint _e30 = params.batch.z;
    uint _e35 = params.batch.w;
    uint batches = ((_e21 * _e25) * _e30) * _e35;
    uint _e37 = flat_workgroup(workgroup, workgroups);
    if (_e37 >= ((rows * columns) * batches)) {
        return;
    }
    Corner corner_1 = Corner {(_e37 % rows) * MATRIX_SPAN, ((_e37 / rows) % columns) * MATRIX_SPAN};
    Bases _e49 = bases_of((_e37 / rows) / columns, params);
    matrix_begin(lane, subgroup, size.w, matrix_lane, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_);
    uint _e54 = params.steps.y;
    bool a_along_k_1 = _e54 == 1u;
    uint _e60 = params.steps.w;
    bool b_along_k_1 = _e60 == 1u;
    MatrixShare _e63 = matrix_share(lane, a_along_k_1, b_along_k_1);
    MatrixShare _e66 = matrix_share(lane + MATRIX_INVOCATIONS, a_along_k_1, b_along_k_1);
    metal::float4x4 _e68 = load(_e49, corner_1, _e63, 0u, params, b_1, a_1, _buffer_sizes);
    first_block = _e68;
    metal::float4x4 _e71 = load(_e49, corner_1, _e66, 0u, params, b_1, a_1, _buffer_sizes);
    second_block = _e71;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e88 = k;
            k = _e88 + MATRIX_DEPTH;
        }
        loop_init_1 = false;
        uint _e75 = k;
        if (_e75 < size.z) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e78 = first_block;
            matrix_stage(_e63, _e78, matrix_b, matrix_a);
            metal::float4x4 _e79 = second_block;
            matrix_stage(_e66, _e79, matrix_b, matrix_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e80 = k;
            metal::float4x4 _e83 = load(_e49, corner_1, _e63, _e80 + MATRIX_DEPTH, params, b_1, a_1, _buffer_sizes);
            first_block = _e83;
            uint _e84 = k;
            metal::float4x4 _e87 = load(_e49, corner_1, _e66, _e84 + MATRIX_DEPTH, params, b_1, a_1, _buffer_sizes);
            second_block = _e87;
            matrix_multiply(matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e130 = i;
            i = _e130 + 1u;
        }
        loop_init_2 = false;
        uint _e93 = i;
        if (_e93 < MATRIX_COUNT) {
        } else {
            break;
        }
        {
            uint _e96 = i;
            matrix_leave(_e96, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_sums);
            uint _e98 = i;
            uint _e99 = matrix_row_of(_e98, matrix_subgroup);
            uint row_3 = corner_1.row + _e99;
            uint _e102 = i;
            uint _e103 = matrix_column_of(_e102, matrix_subgroup);
            uint column_3 = corner_1.column + _e103;
            at = lane & 31u;
            bool loop_init_3 = true;
            while(true) {
                if (!loop_init_3) {
                    uint _e126 = at;
                    at = _e126 + 32u;
                }
                loop_init_3 = false;
                uint _e108 = at;
                if (_e108 < 64u) {
                } else {
                    break;
                }
                {
                    uint _e111 = at;
                    uint _e114 = at;
                    float _e117 = matrix_sum(_e111 / MATRIX, _e114 % MATRIX, matrix_subgroup, matrix_sums);
                    uint _e118 = at;
                    uint _e122 = at;
                    finish(_e49, row_3 + (_e118 / MATRIX), column_3 + (_e122 % MATRIX), _e117, params, c_2, out, _buffer_sizes);
                }
            }
        }
    }
    return;
}
