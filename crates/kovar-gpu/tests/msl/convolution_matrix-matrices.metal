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
struct Phase {
    uint group;
    uint row;
    uint column;
    uint rows;
    uint columns;
    Taps vertical;
    Taps horizontal;
};
struct Corner {
    bool inside;
    char _pad1[3];
    Phase phase;
    uint pixel;
    uint channel;
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
struct Tap {
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
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint MATRIX_INVOCATIONS = 256u;
constant uint MATRIX_SPAN = 64u;
constant uint MATRIX = 8u;
constant uint MATRIX_COUNT = 8u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint ADJOINT = 1u;
constant uint MATRIX_DEPTH = 16u;
constant uint MATRIX_STRIDE = 20u;
constant uint MATRIX_PLACES = 1280u;
constant uint ADDEND = 1u;
constant uint C_DTYPE = 0u;

uint depth_of(
    Phase phase,
    constant Params& params
) {
    uint _e4 = params.image.y;
    return (_e4 * phase.vertical.count) * phase.horizontal.count;
}

Tap tap_of(
    Phase phase_1,
    uint k_1
) {
    uint horizontal = k_1 % phase_1.horizontal.count;
    uint rest = k_1 / phase_1.horizontal.count;
    return Tap {rest / phase_1.vertical.count, rest % phase_1.vertical.count, horizontal};
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
    Phase phase_2,
    uint channel,
    Tap tap,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 taps = metal::uint2(phase_2.vertical.first + (tap.vertical * phase_2.vertical.skip), phase_2.horizontal.first + (tap.horizontal * phase_2.horizontal.skip));
    metal::uint4 _e21 = params.weight.strides;
    metal::uint4 steps = _e21 * metal::uint4(channel, tap.channel, taps);
    uint _e28 = params.weight.offset;
    uint _e33 = params.kernel_.z;
    uint i_12 = ((((_e28 + (phase_2.group * _e33)) + steps.x) + steps.y) + steps.z) + steps.w;
    uint _e46 = word_of(i_12, B_DTYPE);
    uint _e48 = weight[_e46];
    float _e50 = decode(_e48, i_12, B_DTYPE);
    return _e50;
}

float weight_or_zero(
    Phase phase_3,
    uint channel_1,
    Tap tap_1,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.result.y;
    if (channel_1 >= _e6) {
        return 0.0;
    }
    float _e9 = weight_at(phase_3, channel_1, tap_1, params, weight, _buffer_sizes);
    return _e9;
}

metal::float4 weight_column(
    Phase phase_4,
    uint channel_2,
    uint k_2,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = depth_of(phase_4, params);
    if (k_2 >= _e3) {
        return metal::float4 {};
    }
    Tap _e6 = tap_of(phase_4, k_2);
    float _e7 = weight_or_zero(phase_4, channel_2, _e6, params, weight, _buffer_sizes);
    float _e10 = weight_or_zero(phase_4, channel_2 + 1u, _e6, params, weight, _buffer_sizes);
    float _e13 = weight_or_zero(phase_4, channel_2 + 2u, _e6, params, weight, _buffer_sizes);
    float _e16 = weight_or_zero(phase_4, channel_2 + 3u, _e6, params, weight, _buffer_sizes);
    return metal::float4(_e7, _e10, _e13, _e16);
}

metal::float4x4 weight_block(
    Phase phase_5,
    uint channel_3,
    uint k_3,
    constant Params& params,
    device type_5 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = weight_column(phase_5, channel_3, k_3, params, weight, _buffer_sizes);
    metal::float4 _e6 = weight_column(phase_5, channel_3, k_3 + 1u, params, weight, _buffer_sizes);
    metal::float4 _e9 = weight_column(phase_5, channel_3, k_3 + 2u, params, weight, _buffer_sizes);
    metal::float4 _e12 = weight_column(phase_5, channel_3, k_3 + 3u, params, weight, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

float image_at(
    Phase phase_6,
    Pixel pixel,
    Tap tap_2,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    int row_5 = as_type<int>(as_type<uint>(pixel.row) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_2.vertical)) * as_type<uint>(phase_6.vertical.hop))));
    int column_2 = as_type<int>(as_type<uint>(pixel.column) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_2.horizontal)) * as_type<uint>(phase_6.horizontal.hop))));
    if (row_5 >= 0) {
        uint _e25 = params.image.z;
        local = static_cast<uint>(row_5) < _e25;
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
    metal::uint3 steps_1 = _e57.yzw * metal::uint3(tap_2.channel, static_cast<uint>(row_5), static_cast<uint>(column_2));
    uint i_13 = ((pixel.base + steps_1.x) + steps_1.y) + steps_1.z;
    uint _e73 = word_of(i_13, A_DTYPE);
    uint _e75 = x[_e73];
    float _e77 = decode(_e75, i_13, A_DTYPE);
    return _e77;
}

metal::float4 image_column(
    Phase phase_7,
    Four pixels,
    uint k_4,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = depth_of(phase_7, params);
    if (k_4 >= _e3) {
        return metal::float4 {};
    }
    Tap _e6 = tap_of(phase_7, k_4);
    float _e8 = image_at(phase_7, pixels.p0_, _e6, params, x, _buffer_sizes);
    float _e10 = image_at(phase_7, pixels.p1_, _e6, params, x, _buffer_sizes);
    float _e12 = image_at(phase_7, pixels.p2_, _e6, params, x, _buffer_sizes);
    float _e14 = image_at(phase_7, pixels.p3_, _e6, params, x, _buffer_sizes);
    return metal::float4(_e8, _e10, _e12, _e14);
}

metal::float4x4 image_block(
    Phase phase_8,
    Four pixels_1,
    uint k_5,
    constant Params& params,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = image_column(phase_8, pixels_1, k_5, params, x, _buffer_sizes);
    metal::float4 _e6 = image_column(phase_8, pixels_1, k_5 + 1u, params, x, _buffer_sizes);
    metal::float4 _e9 = image_column(phase_8, pixels_1, k_5 + 2u, params, x, _buffer_sizes);
    metal::float4 _e12 = image_column(phase_8, pixels_1, k_5 + 3u, params, x, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load_share(
    Corner corner,
    Four pixels_2,
    Share share,
    uint k_6,
    constant Params& params,
    device type_5 const& weight,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e14 = weight_block(corner.phase, corner.channel + share.row, k_6 + share.k, params, weight, _buffer_sizes);
        return _e14;
    }
    metal::float4x4 _e18 = image_block(corner.phase, pixels_2, k_6 + share.k, params, x, _buffer_sizes);
    return _e18;
}

metal::float4x4 load(
    Corner corner_1,
    Four pixels_3,
    Share share_1,
    uint k_7,
    constant Params& params,
    device type_5 const& weight,
    device type_5 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4x4 _e4 = load_share(corner_1, pixels_3, share_1, k_7, params, weight, x, _buffer_sizes);
    return _e4;
}

uint pixels_of(
    Phase phase_9,
    constant Params& params
) {
    uint _e4 = params.image.x;
    return (_e4 * phase_9.rows) * phase_9.columns;
}

int naga_neg(int val) {
    return as_type<int>(-as_type<uint>(val));
}

Taps taps_of(
    metal::uint4 axis,
    metal::uint2 skips,
    uint kernel_,
    uint phase_10
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
            int reach = as_type<int>(as_type<uint>(static_cast<int>(phase_10 + axis.w)) - as_type<uint>(static_cast<int>(_e27 * axis.z)));
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

Phase phase_of(
    uint index,
    constant Params& params
) {
    uint _e4 = params.horizontal.x;
    uint column_3 = index % _e4;
    uint _e9 = params.horizontal.x;
    uint _e14 = params.vertical.x;
    uint row_6 = (index / _e9) % _e14;
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
    Taps _e71 = taps_of(_e62, _e65.xy, _e70, row_6);
    metal::uint4 _e74 = params.horizontal;
    metal::uint4 _e77 = params.skips;
    uint _e82 = params.kernel_.y;
    Taps _e83 = taps_of(_e74, _e77.zw, _e82, column_3);
    return Phase {(index / _e19) / _e24, row_6, column_3, (((_e29 - row_6) + _e34) - 1u) / _e41, (((_e46 - column_3) + _e51) - 1u) / _e58, _e71, _e83};
}

Corner corner_of(
    uint i_3,
    uint pixels_4,
    uint channels,
    constant Params& params
) {
    Phase _e4 = phase_of(0u, params);
    uint _e5 = pixels_of(_e4, params);
    uint rows = ((_e5 + pixels_4) - 1u) / pixels_4;
    uint _e13 = params.result.y;
    uint columns = ((_e13 + channels) - 1u) / channels;
    uint _e21 = params.result.x;
    uint _e25 = params.vertical.x;
    uint _e30 = params.horizontal.x;
    uint phases = (_e21 * _e25) * _e30;
    Phase _e37 = phase_of((i_3 / rows) / columns, params);
    return Corner {i_3 < ((rows * columns) * phases), {}, _e37, (i_3 % rows) * pixels_4, ((i_3 / rows) % columns) * channels};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
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
    uint i_4,
    uint row_quads,
    uint k_quads,
    bool a_k_major,
    bool b_k_major
) {
    uint blocks = row_quads * k_quads;
    bool is_b_1 = i_4 >= blocks;
    uint block_1 = is_b_1 ? (i_4 - blocks) : i_4;
    if (is_b_1 ? b_k_major : a_k_major) {
        return Share {i_4 < (2u * blocks), is_b_1, {}, (block_1 / k_quads) * 4u, (block_1 % k_quads) * 4u};
    }
    return Share {i_4 < (2u * blocks), is_b_1, {}, (block_1 % row_quads) * 4u, (block_1 / row_quads) * 4u};
}

Share matrix_share(
    uint i_5,
    bool a_k_major_1,
    bool b_k_major_1
) {
    Share _e8 = share_of(i_5, 16u, 4u, a_k_major_1, b_k_major_1);
    return _e8;
}

Pixel pixel_of(
    Phase phase_11,
    uint pixel_1,
    constant Params& params
) {
    uint column_4 = pixel_1 % phase_11.columns;
    uint row_7 = (pixel_1 / phase_11.columns) % phase_11.rows;
    uint batch = (pixel_1 / phase_11.columns) / phase_11.rows;
    uint _e16 = params.image.y;
    uint group = phase_11.group * _e16;
    uint _e21 = params.image.x;
    uint _e26 = params.x.offset;
    uint _e31 = params.x.strides.x;
    uint _e38 = params.x.strides.y;
    return Pixel {batch < _e21, {}, (_e26 + (batch * _e31)) + (group * _e38), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(row_7)) * as_type<uint>(phase_11.vertical.advance))) + as_type<uint>(phase_11.vertical.base)), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(column_4)) * as_type<uint>(phase_11.horizontal.advance))) + as_type<uint>(phase_11.horizontal.base))};
}

Four four_pixels(
    Phase phase_12,
    uint first_1,
    constant Params& params
) {
    Pixel _e2 = pixel_of(phase_12, first_1, params);
    Pixel _e5 = pixel_of(phase_12, first_1 + 1u, params);
    Pixel _e8 = pixel_of(phase_12, first_1 + 2u, params);
    Pixel _e11 = pixel_of(phase_12, first_1 + 3u, params);
    return Four {_e2, _e5, _e8, _e11};
}

void stage_row(
    bool is_b,
    uint row,
    uint k_8,
    metal::float4 four,
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
) {
    uint place = (row * MATRIX_STRIDE) + k_8;
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
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
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
    uint row_1,
    uint k_9,
    threadgroup type_10& matrix_b
) {
    uint place_1 = (row_1 * MATRIX_STRIDE) + k_9;
    return NagaCooperativeLoad(&matrix_b.inner[place_1], MATRIX_STRIDE, true);
}

MatrixA load_a(
    uint row_2,
    uint k_10,
    threadgroup type_10& matrix_a
) {
    uint place_2 = (row_2 * MATRIX_STRIDE) + k_10;
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
    uint row_3,
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
    threadgroup type_10& matrix_b,
    threadgroup type_10& matrix_a
) {
    MatrixB _e3 = load_b(column, k_11, matrix_b);
    MatrixB _e6 = load_b(column + MATRIX, k_11, matrix_b);
    MatrixA _e7 = load_a(row_3, k_11, matrix_a);
    MatrixA _e10 = load_a(row_3 + MATRIX, k_11, matrix_a);
    MatrixA _e13 = load_a(row_3 + 16u, k_11, matrix_a);
    MatrixA _e16 = load_a(row_3 + 24u, k_11, matrix_a);
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
    uint k_12 = 0u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e8 = k_12;
            k_12 = _e8 + MATRIX;
        }
        loop_init_1 = false;
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

void store_sums(
    MatrixC c_1,
    thread uint& matrix_subgroup,
    threadgroup type_11& matrix_sums
) {
    uint _e2 = matrix_subgroup;
    uint place_3 = (_e2 * MATRIX) * MATRIX;
    simdgroup_store(c_1, &matrix_sums.inner[place_3], MATRIX);
    return;
}

void matrix_store(
    uint i_6,
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
    switch(i_6) {
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
    uint i_7,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_row(matrix_subgroup);
    return _e1 + ((i_7 / 2u) * MATRIX);
}

uint matrix_column_of(
    uint i_8,
    thread uint& matrix_subgroup
) {
    uint _e1 = matrix_column(matrix_subgroup);
    return _e1 + ((i_8 % 2u) * MATRIX);
}

float matrix_sum(
    uint row_4,
    uint column_1,
    thread uint& matrix_subgroup,
    threadgroup type_11& matrix_sums
) {
    uint _e3 = matrix_subgroup;
    uint place_4 = (((_e3 * MATRIX) + row_4) * MATRIX) + column_1;
    float _e12 = matrix_sums.inner[place_4];
    return _e12;
}

uint place_of(
    View view,
    Phase phase_13,
    uint pixel_2,
    uint channel_4,
    constant Params& params
) {
    uint _e10 = params.horizontal.x;
    uint column_5 = phase_13.column + ((pixel_2 % phase_13.columns) * _e10);
    uint _e21 = params.vertical.x;
    uint row_8 = phase_13.row + (((pixel_2 / phase_13.columns) % phase_13.rows) * _e21);
    uint batch_1 = (pixel_2 / phase_13.columns) / phase_13.rows;
    uint _e33 = params.result.y;
    metal::uint4 steps_2 = view.strides * metal::uint4(batch_1, (phase_13.group * _e33) + channel_4, row_8, column_5);
    return (((view.offset + steps_2.x) + steps_2.y) + steps_2.z) + steps_2.w;
}

float c_at(
    uint i_9,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_9, C_DTYPE);
    uint _e5 = c_2[_e3];
    float _e7 = decode(_e5, i_9, C_DTYPE);
    return _e7;
}

float added(
    Phase phase_14,
    uint pixel_3,
    uint channel_5,
    float sum,
    constant Params& params,
    device type_5 const& c_2,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e10 = params.c;
        uint _e11 = place_of(_e10, phase_14, pixel_3, channel_5, params);
        float _e12 = c_at(_e11, c_2, _buffer_sizes);
        return sum + _e12;
    }
    return sum;
}

void put(
    uint i_10,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_10] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_11,
    float first_2,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_11] = as_type<uint>(first_2);
    out[i_11 + 1u] = as_type<uint>(second);
    return;
}

void finish_pair(
    Phase phase_15,
    uint pixel_4,
    uint channel_6,
    float first_3,
    float second_1,
    constant Params& params,
    device type_5 const& c_2,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_4 = {};
    bool local_5 = {};
    uint _e5 = pixels_of(phase_15, params);
    if (!((pixel_4 >= _e5))) {
        uint _e13 = params.result.y;
        local_4 = channel_6 >= _e13;
    } else {
        local_4 = true;
    }
    bool _e16 = local_4;
    if (_e16) {
        return;
    }
    View _e19 = params.out;
    uint _e20 = place_of(_e19, phase_15, pixel_4, channel_6, params);
    float _e21 = added(phase_15, pixel_4, channel_6, first_3, params, c_2, _buffer_sizes);
    if ((pixel_4 + 1u) >= _e5) {
        put(_e20, _e21, out, _buffer_sizes);
        return;
    }
    View _e27 = params.out;
    uint _e30 = place_of(_e27, phase_15, pixel_4 + 1u, channel_6, params);
    float _e33 = added(phase_15, pixel_4 + 1u, channel_6, second_1, params, c_2, _buffer_sizes);
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
    Corner _e7 = corner_of(_e4, MATRIX_SPAN, MATRIX_SPAN, params);
    if (!(_e7.inside)) {
        return;
    }
    uint _e13 = params.kernel_.w;
    matrix_begin(lane, subgroup, _e13, matrix_lane, matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_);
    Share _e16 = matrix_share(lane, false, true);
    Share _e21 = matrix_share(lane + MATRIX_INVOCATIONS, false, true);
    Four _e26 = four_pixels(_e7.phase, _e7.pixel + _e16.row, params);
    uint _e28 = depth_of(_e7.phase, params);
    metal::float4x4 _e30 = load(_e7, _e26, _e16, 0u, params, weight, x, _buffer_sizes);
    first_block = _e30;
    metal::float4x4 _e33 = load(_e7, _e26, _e21, 0u, params, weight, x, _buffer_sizes);
    second_block = _e33;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e49 = k;
            k = _e49 + MATRIX_DEPTH;
        }
        loop_init_2 = false;
        uint _e37 = k;
        if (_e37 < _e28) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e39 = first_block;
            matrix_stage(_e16, _e39, matrix_b, matrix_a);
            metal::float4x4 _e40 = second_block;
            matrix_stage(_e21, _e40, matrix_b, matrix_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e41 = k;
            metal::float4x4 _e44 = load(_e7, _e26, _e16, _e41 + MATRIX_DEPTH, params, weight, x, _buffer_sizes);
            first_block = _e44;
            uint _e45 = k;
            metal::float4x4 _e48 = load(_e7, _e26, _e21, _e45 + MATRIX_DEPTH, params, weight, x, _buffer_sizes);
            second_block = _e48;
            matrix_multiply(matrix_subgroup, c00_, c01_, c10_, c11_, c20_, c21_, c30_, c31_, matrix_b, matrix_a);
        }
    }
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e91 = i;
            i = _e91 + 1u;
        }
        loop_init_3 = false;
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
            uint pixel_5 = _e7.pixel + _e60;
            uint _e63 = i;
            uint _e64 = matrix_column_of(_e63, matrix_subgroup);
            uint channel_7 = _e7.channel + _e64;
            at = lane & 31u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e87 = at;
                    at = _e87 + 32u;
                }
                loop_init_4 = false;
                uint _e69 = at;
                if (_e69 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e72 = at;
                    uint row_9 = (_e72 % 4u) * 2u;
                    uint _e77 = at;
                    uint column_6 = _e77 / 4u;
                    float _e80 = matrix_sum(row_9, column_6, matrix_subgroup, matrix_sums);
                    float _e83 = matrix_sum(row_9 + 1u, column_6, matrix_subgroup, matrix_sums);
                    finish_pair(_e7.phase, pixel_5 + row_9, channel_7 + column_6, _e80, _e83, params, c_2, out, _buffer_sizes);
                }
            }
        }
    }
    return;
}
