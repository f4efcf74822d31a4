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
struct Share {
    bool any;
    bool is_b;
    char _pad2[2];
    uint row;
    uint k;
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
struct Tap {
    uint channel;
    uint vertical;
    uint horizontal;
};
typedef uint type_8[1];
struct type_10 {
    metal::float4 inner[512];
};
typedef metal::atomic_uint type_12[1];
constant uint TILE_INVOCATIONS = 256u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint TILE_GROUPS = 1u;
constant uint ADJOINT = 1u;
constant uint TILE_VECTORS = 512u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 1u;
constant uint ADDEND = 1u;
constant uint C_DTYPE = 0u;
constant uint OUT_DTYPE = 1u;

uint tile_span(
) {
    return 64u;
}

uint pixels_of(
    Phase phase,
    constant Params& params
) {
    uint _e4 = params.image.x;
    return (_e4 * phase.rows) * phase.columns;
}

int naga_neg(int val) {
    return as_type<int>(-as_type<uint>(val));
}

Taps taps_of(
    metal::uint4 axis,
    metal::uint2 skips,
    uint kernel_,
    uint phase_1
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
            int reach = as_type<int>(as_type<uint>(static_cast<int>(phase_1 + axis.w)) - as_type<uint>(static_cast<int>(_e27 * axis.z)));
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
    uint column = index % _e4;
    uint _e9 = params.horizontal.x;
    uint _e14 = params.vertical.x;
    uint row = (index / _e9) % _e14;
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
    Taps _e71 = taps_of(_e62, _e65.xy, _e70, row);
    metal::uint4 _e74 = params.horizontal;
    metal::uint4 _e77 = params.skips;
    uint _e82 = params.kernel_.y;
    Taps _e83 = taps_of(_e74, _e77.zw, _e82, column);
    return Phase {(index / _e19) / _e24, row, column, (((_e29 - row) + _e34) - 1u) / _e41, (((_e46 - column) + _e51) - 1u) / _e58, _e71, _e83};
}

Corner corner_of(
    uint i,
    uint pixels,
    uint channels,
    constant Params& params
) {
    Phase _e4 = phase_of(0u, params);
    uint _e5 = pixels_of(_e4, params);
    uint rows = ((_e5 + pixels) - 1u) / pixels;
    uint _e13 = params.result.y;
    uint columns = ((_e13 + channels) - 1u) / channels;
    uint _e21 = params.result.x;
    uint _e25 = params.vertical.x;
    uint _e30 = params.horizontal.x;
    uint phases = (_e21 * _e25) * _e30;
    Phase _e37 = phase_of((i / rows) / columns, params);
    return Corner {i < ((rows * columns) * phases), {}, _e37, (i % rows) * pixels, ((i / rows) % columns) * channels};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
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

Pixel pixel_of(
    Phase phase_2,
    uint pixel,
    constant Params& params
) {
    uint column_1 = pixel % phase_2.columns;
    uint row_1 = (pixel / phase_2.columns) % phase_2.rows;
    uint batch = (pixel / phase_2.columns) / phase_2.rows;
    uint _e16 = params.image.y;
    uint group = phase_2.group * _e16;
    uint _e21 = params.image.x;
    uint _e26 = params.x.offset;
    uint _e31 = params.x.strides.x;
    uint _e38 = params.x.strides.y;
    return Pixel {batch < _e21, {}, (_e26 + (batch * _e31)) + (group * _e38), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(row_1)) * as_type<uint>(phase_2.vertical.advance))) + as_type<uint>(phase_2.vertical.base)), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(column_1)) * as_type<uint>(phase_2.horizontal.advance))) + as_type<uint>(phase_2.horizontal.base))};
}

Four four_pixels(
    Phase phase_3,
    uint first_1,
    constant Params& params
) {
    Pixel _e2 = pixel_of(phase_3, first_1, params);
    Pixel _e5 = pixel_of(phase_3, first_1 + 1u, params);
    Pixel _e8 = pixel_of(phase_3, first_1 + 2u, params);
    Pixel _e11 = pixel_of(phase_3, first_1 + 3u, params);
    return Four {_e2, _e5, _e8, _e11};
}

uint depth_of(
    Phase phase_4,
    constant Params& params
) {
    uint _e4 = params.image.y;
    return (_e4 * phase_4.vertical.count) * phase_4.horizontal.count;
}

Tap tap_of(
    Phase phase_5,
    uint k
) {
    uint horizontal = k % phase_5.horizontal.count;
    uint rest = k / phase_5.horizontal.count;
    return Tap {rest / phase_5.vertical.count, rest % phase_5.vertical.count, horizontal};
}

float decode(
    uint word,
    uint i_2,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_2 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_3,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_3 : (i_3 >> 1u);
}

float weight_at(
    Phase phase_6,
    uint channel,
    Tap tap,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 taps = metal::uint2(phase_6.vertical.first + (tap.vertical * phase_6.vertical.skip), phase_6.horizontal.first + (tap.horizontal * phase_6.horizontal.skip));
    metal::uint4 _e21 = params.weight.strides;
    metal::uint4 steps = _e21 * metal::uint4(channel, tap.channel, taps);
    uint _e28 = params.weight.offset;
    uint _e33 = params.kernel_.z;
    uint i_7 = ((((_e28 + (phase_6.group * _e33)) + steps.x) + steps.y) + steps.z) + steps.w;
    uint _e46 = word_of(i_7, B_DTYPE);
    uint _e48 = weight[_e46];
    float _e50 = decode(_e48, i_7, B_DTYPE);
    return _e50;
}

float weight_or_zero(
    Phase phase_7,
    uint channel_1,
    Tap tap_1,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.result.y;
    if (channel_1 >= _e6) {
        return 0.0;
    }
    float _e9 = weight_at(phase_7, channel_1, tap_1, params, weight, _buffer_sizes);
    return _e9;
}

metal::float4 weight_column(
    Phase phase_8,
    uint channel_2,
    uint k_1,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = depth_of(phase_8, params);
    if (k_1 >= _e3) {
        return metal::float4 {};
    }
    Tap _e6 = tap_of(phase_8, k_1);
    float _e7 = weight_or_zero(phase_8, channel_2, _e6, params, weight, _buffer_sizes);
    float _e10 = weight_or_zero(phase_8, channel_2 + 1u, _e6, params, weight, _buffer_sizes);
    float _e13 = weight_or_zero(phase_8, channel_2 + 2u, _e6, params, weight, _buffer_sizes);
    float _e16 = weight_or_zero(phase_8, channel_2 + 3u, _e6, params, weight, _buffer_sizes);
    return metal::float4(_e7, _e10, _e13, _e16);
}

metal::float4x4 weight_block(
    Phase phase_9,
    uint channel_3,
    uint k_2,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = weight_column(phase_9, channel_3, k_2, params, weight, _buffer_sizes);
    metal::float4 _e6 = weight_column(phase_9, channel_3, k_2 + 1u, params, weight, _buffer_sizes);
    metal::float4 _e9 = weight_column(phase_9, channel_3, k_2 + 2u, params, weight, _buffer_sizes);
    metal::float4 _e12 = weight_column(phase_9, channel_3, k_2 + 3u, params, weight, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

float image_at(
    Phase phase_10,
    Pixel pixel_1,
    Tap tap_2,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    int row_2 = as_type<int>(as_type<uint>(pixel_1.row) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_2.vertical)) * as_type<uint>(phase_10.vertical.hop))));
    int column_2 = as_type<int>(as_type<uint>(pixel_1.column) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_2.horizontal)) * as_type<uint>(phase_10.horizontal.hop))));
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
    if (!(!(pixel_1.any))) {
        local_3 = !(inside);
    } else {
        local_3 = true;
    }
    bool _e52 = local_3;
    if (_e52) {
        return 0.0;
    }
    metal::uint4 _e57 = params.x.strides;
    metal::uint3 steps_1 = _e57.yzw * metal::uint3(tap_2.channel, static_cast<uint>(row_2), static_cast<uint>(column_2));
    uint i_8 = ((pixel_1.base + steps_1.x) + steps_1.y) + steps_1.z;
    uint _e73 = word_of(i_8, A_DTYPE);
    uint _e75 = x[_e73];
    float _e77 = decode(_e75, i_8, A_DTYPE);
    return _e77;
}

metal::float4 image_column(
    Phase phase_11,
    Four pixels_1,
    uint k_3,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = depth_of(phase_11, params);
    if (k_3 >= _e3) {
        return metal::float4 {};
    }
    Tap _e6 = tap_of(phase_11, k_3);
    float _e8 = image_at(phase_11, pixels_1.p0_, _e6, params, x, _buffer_sizes);
    float _e10 = image_at(phase_11, pixels_1.p1_, _e6, params, x, _buffer_sizes);
    float _e12 = image_at(phase_11, pixels_1.p2_, _e6, params, x, _buffer_sizes);
    float _e14 = image_at(phase_11, pixels_1.p3_, _e6, params, x, _buffer_sizes);
    return metal::float4(_e8, _e10, _e12, _e14);
}

metal::float4x4 image_block(
    Phase phase_12,
    Four pixels_2,
    uint k_4,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = image_column(phase_12, pixels_2, k_4, params, x, _buffer_sizes);
    metal::float4 _e6 = image_column(phase_12, pixels_2, k_4 + 1u, params, x, _buffer_sizes);
    metal::float4 _e9 = image_column(phase_12, pixels_2, k_4 + 2u, params, x, _buffer_sizes);
    metal::float4 _e12 = image_column(phase_12, pixels_2, k_4 + 3u, params, x, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 load_share(
    Corner corner,
    Four pixels_3,
    Share share,
    uint k_5,
    constant Params& params,
    device type_8 const& weight,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e14 = weight_block(corner.phase, corner.channel + share.row, k_5 + share.k, params, weight, _buffer_sizes);
        return _e14;
    }
    metal::float4x4 _e18 = image_block(corner.phase, pixels_3, k_5 + share.k, params, x, _buffer_sizes);
    return _e18;
}

uint tile_place(
    uint quad_,
    uint k_6
) {
    return ((k_6 * 16u) * TILE_GROUPS) + (quad_ ^ (((k_6 >> 2u) & 3u) << 1u));
}

void tile_stage(
    Share share_1,
    metal::float4x4 block,
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
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
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
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
    uint k_7,
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
) {
    Sums next_1 = {};
    uint _e9 = tile_place(lane_2 >> 4u, k_7);
    uint _e12 = tile_place(lane_2 & 15u, k_7);
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
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
) {
    Sums next_2 = {};
    uint k_8 = 0u;
    next_2 = sums_3;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e11 = k_8;
            k_8 = _e11 + 4u;
        }
        loop_init_1 = false;
        uint _e5 = k_8;
        uint _e6 = tile_depth();
        if (_e5 < _e6) {
        } else {
            break;
        }
        {
            Sums _e8 = next_2;
            uint _e9 = k_8;
            Sums _e10 = hot_four_k(_e8, lane_3, _e9, tile_b, tile_a);
            next_2 = _e10;
        }
    }
    Sums _e14 = next_2;
    return _e14;
}

uint place_of(
    View view,
    Phase phase_13,
    uint pixel_2,
    uint channel_4,
    constant Params& params
) {
    uint _e10 = params.horizontal.x;
    uint column_3 = phase_13.column + ((pixel_2 % phase_13.columns) * _e10);
    uint _e21 = params.vertical.x;
    uint row_3 = phase_13.row + (((pixel_2 / phase_13.columns) % phase_13.rows) * _e21);
    uint batch_1 = (pixel_2 / phase_13.columns) / phase_13.rows;
    uint _e33 = params.result.y;
    metal::uint4 steps_2 = view.strides * metal::uint4(batch_1, (phase_13.group * _e33) + channel_4, row_3, column_3);
    return (((view.offset + steps_2.x) + steps_2.y) + steps_2.z) + steps_2.w;
}

float c_at(
    uint i_4,
    device type_8 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_4, C_DTYPE);
    return _e7;
}

float added(
    Phase phase_14,
    uint pixel_3,
    uint channel_5,
    float sum,
    constant Params& params,
    device type_8 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e10 = params.c;
        uint _e11 = place_of(_e10, phase_14, pixel_3, channel_5, params);
        float _e12 = c_at(_e11, c, _buffer_sizes);
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
    uint i_5,
    float value_1,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_5 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_5 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_5 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

void put_pair(
    uint i_6,
    float first_2,
    float second,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = encode(first_2, OUT_DTYPE);
    uint _e10 = encode(second, OUT_DTYPE);
    metal::atomic_store_explicit(&out[i_6 >> 1u], _e8 | (_e10 << 16u), metal::memory_order_relaxed);
    return;
}

void finish_pair(
    Phase phase_15,
    uint pixel_4,
    uint channel_6,
    float first_3,
    float second_1,
    constant Params& params,
    device type_8 const& c,
    device type_12& out,
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
    float _e21 = added(phase_15, pixel_4, channel_6, first_3, params, c, _buffer_sizes);
    if ((pixel_4 + 1u) >= _e5) {
        put(_e20, _e21, out, _buffer_sizes);
        return;
    }
    View _e27 = params.out;
    uint _e30 = place_of(_e27, phase_15, pixel_4 + 1u, channel_6, params);
    float _e33 = added(phase_15, pixel_4 + 1u, channel_6, second_1, params, c, _buffer_sizes);
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

void finish_block(
    Phase phase_16,
    uint pixel_5,
    uint channel_7,
    Block sums_4,
    constant Params& params,
    device type_8 const& c,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish_pair(phase_16, pixel_5, channel_7, sums_4.r0_.x, sums_4.r1_.x, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5, channel_7 + 1u, sums_4.r0_.y, sums_4.r1_.y, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5, channel_7 + 2u, sums_4.r0_.z, sums_4.r1_.z, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5, channel_7 + 3u, sums_4.r0_.w, sums_4.r1_.w, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5 + 2u, channel_7, sums_4.r2_.x, sums_4.r3_.x, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5 + 2u, channel_7 + 1u, sums_4.r2_.y, sums_4.r3_.y, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5 + 2u, channel_7 + 2u, sums_4.r2_.z, sums_4.r3_.z, params, c, out, _buffer_sizes);
    finish_pair(phase_16, pixel_5 + 2u, channel_7 + 3u, sums_4.r2_.w, sums_4.r3_.w, params, c, out, _buffer_sizes);
    return;
}

void tiled_convolution(
    Corner corner_1,
    uint lane_4,
    constant Params& params,
    device type_8 const& weight,
    device type_8 const& x,
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a,
    device type_8 const& c,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    Sums sums_5 = Sums {};
    metal::float4x4 block_1 = {};
    uint k_9 = 0u;
    Share _e4 = tile_share(lane_4, false, true);
    Four _e9 = four_pixels(corner_1.phase, corner_1.pixel + _e4.row, params);
    uint _e11 = depth_of(corner_1.phase, params);
    metal::float4x4 _e15 = load_share(corner_1, _e9, _e4, 0u, params, weight, x, _buffer_sizes);
    block_1 = _e15;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e28 = k_9;
            uint _e29 = tile_depth();
            k_9 = _e28 + _e29;
        }
        loop_init_2 = false;
        uint _e19 = k_9;
        if (_e19 < _e11) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e21 = block_1;
            tile_stage(_e4, _e21, tile_b, tile_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e22 = k_9;
            uint _e23 = tile_depth();
            metal::float4x4 _e25 = load_share(corner_1, _e9, _e4, _e22 + _e23, params, weight, x, _buffer_sizes);
            block_1 = _e25;
            Sums _e26 = sums_5;
            Sums _e27 = tile_multiply(_e26, lane_4, tile_b, tile_a);
            sums_5 = _e27;
        }
    }
    uint pixel_6 = corner_1.pixel + ((lane_4 >> 4u) * 4u);
    uint channel_8 = corner_1.channel + ((lane_4 & 15u) * 4u);
    Block _e45 = sums_5.near;
    finish_block(corner_1.phase, pixel_6, channel_8, _e45, params, c, out, _buffer_sizes);
    if (false) {
        Block _e54 = sums_5.right;
        finish_block(corner_1.phase, pixel_6, channel_8 + 64u, _e54, params, c, out, _buffer_sizes);
        Block _e59 = sums_5.below;
        finish_block(corner_1.phase, pixel_6 + 64u, channel_8, _e59, params, c, out, _buffer_sizes);
        Block _e66 = sums_5.far;
        finish_block(corner_1.phase, pixel_6 + 64u, channel_8 + 64u, _e66, params, c, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}

struct convolutionInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void convolution(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_8 const& weight [[user(fake0)]]
, device type_8 const& x [[user(fake0)]]
, threadgroup type_10& tile_b
, threadgroup type_10& tile_a
, device type_8 const& c [[user(fake0)]]
, device type_12& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = tile_span();
    uint _e4 = flat_workgroup(workgroup, workgroups);
    Corner _e5 = corner_of(_e4, _e3, _e3, params);
    if (_e5.inside) {
        tiled_convolution(_e5, lane, params, weight, x, tile_b, tile_a, c, out, _buffer_sizes);
        return;
    } else {
        return;
    }
}
