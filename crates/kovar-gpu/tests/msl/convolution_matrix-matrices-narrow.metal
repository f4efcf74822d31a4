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

struct Taps {
    uint count;
    uint first;
    uint skip;
    int advance;
    int base;
    int hop;
};
struct Part {
    uint group;
    uint row;
    uint column;
    uint rows;
    uint columns;
    Taps vertical;
    Taps horizontal;
};
struct Pixel {
    bool any;
    char _pad1[3];
    uint base;
    int row;
    int column;
};
struct Four {
    Pixel p0_;
    Pixel p1_;
    Pixel p2_;
    Pixel p3_;
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
    View x;
    View weight;
    View c;
    View out;
    metal::uint4 image;
    metal::uint4 result;
    metal::uint4 kernel_;
    metal::uint4 vertical;
    metal::uint4 horizontal;
    metal::uint4 skips;
};
struct Term {
    uint channel;
    uint vertical;
    uint horizontal;
};
typedef uint type_5[1];
typedef metal::simdgroup_float8x8 MatrixC;
struct type_10 {
    float inner[1280];
};
typedef metal::simdgroup_float8x8 MatrixB;
typedef metal::simdgroup_float8x8 MatrixA;
struct type_11 {
    float inner[512];
};
typedef metal::atomic_uint type_13[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint MATRIX_INVOCATIONS = 256u;
constant uint MATRIX_SPAN = 64u;
constant uint MATRIX = 8u;
constant uint MATRIX_COUNT = 8u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 1u;
constant uint ADJOINT = 1u;
constant uint MATRIX_DEPTH = 16u;
constant uint MATRIX_STRIDE = 20u;
constant uint MATRIX_PLACES = 1280u;
constant uint ADDEND = 1u;
constant uint C_DTYPE = 0u;
constant uint OUT_DTYPE = 1u;

uint terms_of(
    Part part,
    constant Params& params
) {
    uint _e4 = params.image.y;
    return (_e4 * part.vertical.count) * part.horizontal.count;
}

Term term_of(
    Part part_1,
    uint term
) {
    uint horizontal = term % part_1.horizontal.count;
    uint rest = term / part_1.horizontal.count;
    return Term {rest / part_1.vertical.count, rest % part_1.vertical.count, horizontal};
}

float decode(
    uint word,
    uint i_1,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_1 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_2,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_2 : (i_2 >> 1u);
}

float weight_at(
    Part part_2,
    uint channel,
    Term term_1,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 taps = metal::uint2(part_2.vertical.first + (term_1.vertical * part_2.vertical.skip), part_2.horizontal.first + (term_1.horizontal * part_2.horizontal.skip));
    metal::uint4 _e21 = params.weight.strides;
    metal::uint4 steps = _e21 * metal::uint4(channel, term_1.channel, taps);
    uint _e28 = params.weight.offset;
    uint _e33 = params.kernel_.z;
    uint i_14 = ((((_e28 + (part_2.group * _e33)) + steps.x) + steps.y) + steps.z) + steps.w;
    uint _e46 = word_of(i_14, B_DTYPE);
    uint _e48 = weight[_e46];
    float _e50 = decode(_e48, i_14, B_DTYPE);
    return _e50;
}

float weight_or_zero(
    Part part_3,
    uint channel_1,
    Term term_2,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.result.y;
    if (channel_1 >= _e6) {
        return 0.0;
    }
    float _e9 = weight_at(part_3, channel_1, term_2, params, weight, _buffer_sizes);
    return _e9;
}

metal::float4 weight_term(
    Part part_4,
    uint channel_2,
    uint i_3,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = terms_of(part_4, params);
    if (i_3 >= _e3) {
        return metal::float4 {};
    }
    Term _e6 = term_of(part_4, i_3);
    float _e7 = weight_or_zero(part_4, channel_2, _e6, params, weight, _buffer_sizes);
    float _e10 = weight_or_zero(part_4, channel_2 + 1u, _e6, params, weight, _buffer_sizes);
    float _e13 = weight_or_zero(part_4, channel_2 + 2u, _e6, params, weight, _buffer_sizes);
    float _e16 = weight_or_zero(part_4, channel_2 + 3u, _e6, params, weight, _buffer_sizes);
    return metal::float4(_e7, _e10, _e13, _e16);
}

metal::float4x4 weight_block(
    Part part_5,
    uint channel_3,
    uint i_4,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = weight_term(part_5, channel_3, i_4, params, weight, _buffer_sizes);
    metal::float4 _e6 = weight_term(part_5, channel_3, i_4 + 1u, params, weight, _buffer_sizes);
    metal::float4 _e9 = weight_term(part_5, channel_3, i_4 + 2u, params, weight, _buffer_sizes);
    metal::float4 _e12 = weight_term(part_5, channel_3, i_4 + 3u, params, weight, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

float image_at(
    Part part_6,
    Pixel pixel,
    Term term_3,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    int row_2 = as_type<int>(as_type<uint>(pixel.row) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(term_3.vertical)) * as_type<uint>(part_6.vertical.hop))));
    int column_2 = as_type<int>(as_type<uint>(pixel.column) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(term_3.horizontal)) * as_type<uint>(part_6.horizontal.hop))));
    if (row_2 >= 0) {
        uint _e25 = params.image.z;
        local = static_cast<uint>(row_2) < _e25;
    } else {
        local = false;
    }
    bool _e28 = local;
    if (_e28) {
        local_1 = column_2 >= 0;
    } else {
        local_1 = false;
    }
    bool _e34 = local_1;
    if (_e34) {
        uint _e41 = params.image.w;
        local_2 = static_cast<uint>(column_2) < _e41;
    } else {
        local_2 = false;
    }
    bool inside = local_2;
    if (!(!(pixel.any))) {
        local_3 = !(inside);
    } else {
        local_3 = true;
    }
    bool _e52 = local_3;
    if (_e52) {
        return 0.0;
    }
    metal::uint4 _e57 = params.x.strides;
    metal::uint3 steps_1 = _e57.yzw * metal::uint3(term_3.channel, static_cast<uint>(row_2), static_cast<uint>(column_2));
    uint i_15 = ((pixel.base + steps_1.x) + steps_1.y) + steps_1.z;
    uint _e73 = word_of(i_15, A_DTYPE);
    uint _e75 = x[_e73];
    float _e77 = decode(_e75, i_15, A_DTYPE);
    return _e77;
}

metal::float4 image_term(
    Part part_7,
    Four pixels,
    uint i_5,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = terms_of(part_7, params);
    if (i_5 >= _e3) {
        return metal::float4 {};
    }
    Term _e6 = term_of(part_7, i_5);
    float _e8 = image_at(part_7, pixels.p0_, _e6, params, x, _buffer_sizes);
    float _e10 = image_at(part_7, pixels.p1_, _e6, params, x, _buffer_sizes);
    float _e12 = image_at(part_7, pixels.p2_, _e6, params, x, _buffer_sizes);
    float _e14 = image_at(part_7, pixels.p3_, _e6, params, x, _buffer_sizes);
    return metal::float4(_e8, _e10, _e12, _e14);
}

metal::float4x4 image_block(
    Part part_8,
    Four pixels_1,
    uint i_6,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = image_term(part_8, pixels_1, i_6, params, x, _buffer_sizes);
    metal::float4 _e6 = image_term(part_8, pixels_1, i_6 + 1u, params, x, _buffer_sizes);
    metal::float4 _e9 = image_term(part_8, pixels_1, i_6 + 2u, params, x, _buffer_sizes);
    metal::float4 _e12 = image_term(part_8, pixels_1, i_6 + 3u, params, x, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load(
    Part part_9,
    Four pixels_2,
    uint channel_4,
    MatrixShare share,
    uint k_1,
    constant Params& params,
    device type_5 const& weight,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4x4 block = metal::float4x4 {};
    if (share.any) {
        if (share.is_b) {
            metal::float4x4 _e13 = weight_block(part_9, channel_4 + share.line, k_1 + share.k, params, weight, _buffer_sizes);
            block = _e13;
        } else {
            metal::float4x4 _e16 = image_block(part_9, pixels_2, k_1 + share.k, params, x, _buffer_sizes);
            block = _e16;
        }
    }
    metal::float4x4 _e17 = block;
    return _e17;
}

uint pixels_of(
    Part part_10,
    constant Params& params
) {
    uint _e4 = params.image.x;
    return (_e4 * part_10.rows) * part_10.columns;
}

int naga_neg(int val) {
    return as_type<int>(-as_type<uint>(val));
}

Taps taps_of(
    metal::uint4 axis,
    metal::uint2 skips,
    uint kernel_,
    uint phase
) {
    uint first = 0u;
    if (false) {
        return Taps {kernel_, 0u, 1u, static_cast<int>(axis.y), naga_neg(static_cast<int>(axis.w)), static_cast<int>(axis.z)};
    }
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e56 = first;
            first = _e56 + 1u;
        }
        loop_init = false;
        uint _e20 = first;
        if (_e20 < metal::min(skips.x, kernel_)) {
        } else {
            break;
        }
        {
            uint _e27 = first;
            int reach = as_type<int>(as_type<uint>(static_cast<int>(phase + axis.w)) - as_type<uint>(static_cast<int>(_e27 * axis.z)));
            if ((reach % static_cast<int>(axis.y)) == 0) {
                uint _e37 = first;
                uint count_1 = (((kernel_ - _e37) + skips.x) - 1u) / skips.x;
                uint _e45 = first;
                return Taps {count_1, _e45, skips.x, 1, reach / static_cast<int>(axis.y), naga_neg(static_cast<int>(skips.y))};
            }
        }
    }
    return Taps {0u, 0u, 1u, 1, 0, 0};
}

Part part_of(
    uint index,
    constant Params& params
) {
    uint _e4 = params.horizontal.x;
    uint column_3 = index % _e4;
    uint _e9 = params.horizontal.x;
    uint _e14 = params.vertical.x;
    uint row_3 = (index / _e9) % _e14;
    uint _e19 = params.horizontal.x;
    uint _e24 = params.vertical.x;
    uint _e29 = params.result.z;
    uint _e34 = params.vertical.x;
    uint _e41 = params.vertical.x;
    uint _e46 = params.result.w;
    uint _e51 = params.horizontal.x;
    uint _e58 = params.horizontal.x;
    metal::uint4 _e62 = params.vertical;
    metal::uint4 _e65 = params.skips;
    uint _e70 = params.kernel_.x;
    Taps _e71 = taps_of(_e62, _e65.xy, _e70, row_3);
    metal::uint4 _e74 = params.horizontal;
    metal::uint4 _e77 = params.skips;
    uint _e82 = params.kernel_.y;
    Taps _e83 = taps_of(_e74, _e77.zw, _e82, column_3);
    return Part {(index / _e19) / _e24, row_3, column_3, (((_e29 - row_3) + _e34) - 1u) / _e41, (((_e46 - column_3) + _e51) - 1u) / _e58, _e71, _e83};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

uint parts(
    constant Params& params
) {
    uint _e3 = params.result.x;
    uint _e7 = params.vertical.x;
    uint _e12 = params.horizontal.x;
    return (_e3 * _e7) * _e12;
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
    uint i_7,
    bool a_along_k,
    bool b_along_k
) {
    bool is_b_1 = i_7 >= 64u;
    uint block_2 = is_b_1 ? (i_7 - 64u) : i_7;
    if (is_b_1 ? b_along_k : a_along_k) {
        return MatrixShare {i_7 < 128u, is_b_1, {}, (block_2 / 4u) * 4u, (block_2 % 4u) * 4u};
    }
    return MatrixShare {i_7 < 128u, is_b_1, {}, (block_2 % 16u) * 4u, (block_2 / 16u) * 4u};
}

Pixel pixel_of(
    Part part_11,
    uint pixel_1,
    constant Params& params
) {
    uint column_4 = pixel_1 % part_11.columns;
    uint row_4 = (pixel_1 / part_11.columns) % part_11.rows;
    uint batch = (pixel_1 / part_11.columns) / part_11.rows;
    uint _e16 = params.image.y;
    uint group = part_11.group * _e16;
    uint _e21 = params.image.x;
    uint _e26 = params.x.offset;
    uint _e31 = params.x.strides.x;
    uint _e38 = params.x.strides.y;
    return Pixel {batch < _e21, {}, (_e26 + (batch * _e31)) + (group * _e38), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(row_4)) * as_type<uint>(part_11.vertical.advance))) + as_type<uint>(part_11.vertical.base)), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(column_4)) * as_type<uint>(part_11.horizontal.advance))) + as_type<uint>(part_11.horizontal.base))};
}

Four four_pixels(
    Part part_12,
    uint first_1,
    constant Params& params
) {
    Pixel _e2 = pixel_of(part_12, first_1, params);
    Pixel _e5 = pixel_of(part_12, first_1 + 1u, params);
    Pixel _e8 = pixel_of(part_12, first_1 + 2u, params);
    Pixel _e11 = pixel_of(part_12, first_1 + 3u, params);
    return Four {_e2, _e5, _e8, _e11};
}

void stage_line(
    bool is_b,
    uint line,
    uint k_2,
    metal::float4 terms,
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
) {
    uint place = (line * MATRIX_STRIDE) + k_2;
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
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
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
    uint line_1,
    uint k_3,
    threadgroup type_10& matrix_b
) {
    uint place_1 = (line_1 * MATRIX_STRIDE) + k_3;
    return NagaCooperativeLoad(&matrix_b.inner[place_1], MATRIX_STRIDE, true);
}

MatrixA load_a(
    uint line_2,
    uint k_4,
    threadgroup type_10& matrix_a
) {
    uint place_2 = (line_2 * MATRIX_STRIDE) + k_4;
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
    uint k_5,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_,
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
) {
    MatrixB _e3 = load_b(column, k_5, matrix_b);
    MatrixB _e6 = load_b(column + MATRIX, k_5, matrix_b);
    MatrixA _e7 = load_a(row, k_5, matrix_a);
    MatrixA _e10 = load_a(row + MATRIX, k_5, matrix_a);
    MatrixA _e13 = load_a(row + 16u, k_5, matrix_a);
    MatrixA _e16 = load_a(row + 24u, k_5, matrix_a);
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
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
) {
    uint k_6 = 0u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e8 = k_6;
            k_6 = _e8 + MATRIX;
        }
        loop_init_1 = false;
        uint _e2 = k_6;
        if (_e2 < MATRIX_DEPTH) {
        } else {
            break;
        }
        {
            uint _e5 = matrix_row(matrix_subgroup);
            uint _e6 = matrix_column(matrix_subgroup);
            uint _e7 = k_6;
            hot_matrices(_e5, _e6, _e7, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    return;
}

void leave_sums(
    MatrixC c_1,
    thread uint& matrix_subgroup,
    threadgroup type_11& matrix_sums
) {
    uint _e2 = matrix_subgroup;
    uint place_3 = (_e2 * MATRIX) * MATRIX;
    simdgroup_store(c_1, &matrix_sums.inner[place_3], MATRIX);
    return;
}

void matrix_leave(
    uint i_8,
    thread uint& matrix_subgroup,
    thread MatrixC& c00_,
    thread MatrixC& c01_,
    thread MatrixC& c10_,
    thread MatrixC& c11_,
    thread MatrixC& c20_,
    thread MatrixC& c21_,
    thread MatrixC& c30_,
    thread MatrixC& c31_,
    threadgroup type_11& matrix_sums
) {
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    switch(i_8) {
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
    uint i_9,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_row(matrix_subgroup);
    return _e1 + ((i_9 / 2u) * MATRIX);
}

uint matrix_column_of(
    uint i_10,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_column(matrix_subgroup);
    return _e1 + ((i_10 % 2u) * MATRIX);
}

float matrix_sum(
    uint row_1,
    uint column_1,
    thread uint& matrix_subgroup,
    threadgroup type_11& matrix_sums
) {
    uint _e3 = matrix_subgroup;
    uint place_4 = (((_e3 * MATRIX) + row_1) * MATRIX) + column_1;
    float _e12 = matrix_sums.inner[place_4];
    return _e12;
}

uint place_of(
    View view,
    Part part_13,
    uint pixel_2,
    uint channel_5,
    constant Params& params
) {
    uint _e10 = params.horizontal.x;
    uint column_5 = part_13.column + ((pixel_2 % part_13.columns) * _e10);
    uint _e21 = params.vertical.x;
    uint row_5 = part_13.row + (((pixel_2 / part_13.columns) % part_13.rows) * _e21);
    uint batch_1 = (pixel_2 / part_13.columns) / part_13.rows;
    uint _e33 = params.result.y;
    metal::uint4 steps_2 = view.strides * metal::uint4(batch_1, (part_13.group * _e33) + channel_5, row_5, column_5);
    return (((view.offset + steps_2.x) + steps_2.y) + steps_2.z) + steps_2.w;
}

float c_at(
    uint i_11,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_11, C_DTYPE);
    uint _e5 = c_2[_e3];
    float _e7 = decode(_e5, i_11, C_DTYPE);
    return _e7;
}

float added(
    Part part_14,
    uint pixel_3,
    uint channel_6,
    float sum,
    constant Params& params,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e10 = params.c;
        uint _e11 = place_of(_e10, part_14, pixel_3, channel_6, params);
        float _e12 = c_at(_e11, c_2, _buffer_sizes);
        return sum + _e12;
    }
    return sum;
}

uint encode(
    float value,
    uint dtype_2
) {
    uint bits = as_type<uint>(value);
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
    uint i_12,
    float value_1,
    device type_13& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_12 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_12 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_12 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

void put_pair(
    uint i_13,
    float first_2,
    float second,
    device type_13& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = encode(first_2, OUT_DTYPE);
    uint _e10 = encode(second, OUT_DTYPE);
    metal::atomic_store_explicit(&out[i_13 >> 1u], _e8 | (_e10 << 16u), metal::memory_order_relaxed);
    return;
}

void finish_pair(
    Part part_15,
    uint pixel_4,
    uint channel_7,
    float first_3,
    float second_1,
    constant Params& params,
    device type_5 const& c_2,
    device type_13& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_4 = {};
    bool local_5 = {};
    uint _e5 = pixels_of(part_15, params);
    if (!((pixel_4 >= _e5))) {
        uint _e13 = params.result.y;
        local_4 = channel_7 >= _e13;
    } else {
        local_4 = true;
    }
    bool _e16 = local_4;
    if (_e16) {
        return;
    }
    View _e19 = params.out;
    uint _e20 = place_of(_e19, part_15, pixel_4, channel_7, params);
    float _e21 = added(part_15, pixel_4, channel_7, first_3, params, c_2, _buffer_sizes);
    if ((pixel_4 + 1u) >= _e5) {
        put(_e20, _e21, out, _buffer_sizes);
        return;
    }
    View _e27 = params.out;
    uint _e30 = place_of(_e27, part_15, pixel_4 + 1u, channel_7, params);
    float _e33 = added(part_15, pixel_4 + 1u, channel_7, second_1, params, c_2, _buffer_sizes);
    if (_e30 == (_e20 + 1u)) {
        local_5 = (_e20 % 2u) == 0u;
    } else {
        local_5 = false;
    }
    bool _e44 = local_5;
    if (_e44) {
        put_pair(_e20, _e21, _e33, out, _buffer_sizes);
        return;
    } else {
        put(_e20, _e21, out, _buffer_sizes);
        put(_e30, _e33, out, _buffer_sizes);
        return;
    }
}

struct convolution_matrixInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void convolution_matrix(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& weight [[user(fake0)]]
, device type_5 const& x [[user(fake0)]]
, threadgroup type_10& matrix_b
, threadgroup type_10& matrix_a
, threadgroup type_11& matrix_sums
, device type_5 const& c_2 [[user(fake0)]]
, device type_13& out [[user(fake0)]]
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
    Part _e6 = part_of(0u, params);
    uint _e7 = pixels_of(_e6, params);
    uint tiles = ((_e7 + MATRIX_SPAN) - 1u) / MATRIX_SPAN;
    uint _e15 = params.result.y;
    uint columns = ((_e15 + MATRIX_SPAN) - 1u) / MATRIX_SPAN;
    uint _e20 = flat_workgroup(workgroup, workgroups);
    uint _e22 = parts(params);
    if (_e20 >= ((tiles * columns) * _e22)) {
        return;
    }
    uint first_pixel = (_e20 % tiles) * MATRIX_SPAN;
    uint first_channel = ((_e20 / tiles) % columns) * MATRIX_SPAN;
    Part _e32 = part_of((_e20 / tiles) / columns, params);
    uint _e36 = params.kernel_.w;
    matrix_begin(lane, subgroup, _e36, matrix_lane, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_);
    MatrixShare _e39 = matrix_share(lane, false, true);
    MatrixShare _e44 = matrix_share(lane + MATRIX_INVOCATIONS, false, true);
    Four _e47 = four_pixels(_e32, first_pixel + _e39.line, params);
    uint _e48 = terms_of(_e32, params);
    metal::float4x4 _e50 = load(_e32, _e47, first_channel, _e39, 0u, params, weight, x, _buffer_sizes);
    first_block = _e50;
    metal::float4x4 _e53 = load(_e32, _e47, first_channel, _e44, 0u, params, weight, x, _buffer_sizes);
    second_block = _e53;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e69 = k;
            k = _e69 + MATRIX_DEPTH;
        }
        loop_init_2 = false;
        uint _e57 = k;
        if (_e57 < _e48) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e59 = first_block;
            matrix_stage(_e39, _e59, matrix_b, matrix_a);
            metal::float4x4 _e60 = second_block;
            matrix_stage(_e44, _e60, matrix_b, matrix_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e61 = k;
            metal::float4x4 _e64 = load(_e32, _e47, first_channel, _e39, _e61 + MATRIX_DEPTH, params, weight, x, _buffer_sizes);
            first_block = _e64;
            uint _e65 = k;
            metal::float4x4 _e68 = load(_e32, _e47, first_channel, _e44, _e65 + MATRIX_DEPTH, params, weight, x, _buffer_sizes);
            second_block = _e68;
            matrix_multiply(matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e108 = i;
            i = _e108 + 1u;
        }
        loop_init_3 = false;
        uint _e74 = i;
        if (_e74 < MATRIX_COUNT) {
        } else {
            break;
        }
        {
            uint _e77 = i;
            matrix_leave(_e77, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_sums);
            uint _e78 = i;
            uint _e79 = matrix_row_of(_e78, matrix_subgroup);
            uint pixel_5 = first_pixel + _e79;
            uint _e81 = i;
            uint _e82 = matrix_column_of(_e81, matrix_subgroup);
            uint channel_8 = first_channel + _e82;
            at = lane & 31u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e104 = at;
                    at = _e104 + 32u;
                }
                loop_init_4 = false;
                uint _e87 = at;
                if (_e87 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e90 = at;
                    uint row_6 = (_e90 % 4u) * 2u;
                    uint _e95 = at;
                    uint column_6 = _e95 / 4u;
                    float _e98 = matrix_sum(row_6, column_6, matrix_subgroup, matrix_sums);
                    float _e101 = matrix_sum(row_6 + 1u, column_6, matrix_subgroup, matrix_sums);
                    finish_pair(_e32, pixel_5 + row_6, channel_8 + column_6, _e98, _e101, params, c_2, out, _buffer_sizes);
                }
            }
        }
    }
    return;
}
