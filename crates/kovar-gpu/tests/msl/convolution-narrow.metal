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
struct Part {
    uint group;
    uint row;
    uint column;
    uint rows;
    uint columns;
    Taps vertical;
    Taps horizontal;
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
    uint line;
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
struct Term {
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
    Part part,
    constant Params& params
) {
    uint _e4 = params.image.x;
    return (_e4 * part.rows) * part.columns;
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
    return Part {(index / _e19) / _e24, row, column, (((_e29 - row) + _e34) - 1u) / _e41, (((_e46 - column) + _e51) - 1u) / _e58, _e71, _e83};
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

uint tile_depth(
) {
    return 32u;
}

Share tile_share(
    uint lane_1,
    bool a_along_k,
    bool b_along_k
) {
    bool is_b = lane_1 >= 128u;
    uint i_9 = is_b ? (lane_1 - 128u) : lane_1;
    uint _e10 = tile_depth();
    uint quads = _e10 / 4u;
    if (is_b ? b_along_k : a_along_k) {
        return Share {i_9 < 128u, is_b, {}, (i_9 / quads) * 4u, (i_9 % quads) * 4u};
    }
    return Share {i_9 < 128u, is_b, {}, (i_9 % 16u) * 4u, (i_9 / 16u) * 4u};
}

Pixel pixel_of(
    Part part_1,
    uint pixel,
    constant Params& params
) {
    uint column_1 = pixel % part_1.columns;
    uint row_1 = (pixel / part_1.columns) % part_1.rows;
    uint batch = (pixel / part_1.columns) / part_1.rows;
    uint _e16 = params.image.y;
    uint group_1 = part_1.group * _e16;
    uint _e21 = params.image.x;
    uint _e26 = params.x.offset;
    uint _e31 = params.x.strides.x;
    uint _e38 = params.x.strides.y;
    return Pixel {batch < _e21, {}, (_e26 + (batch * _e31)) + (group_1 * _e38), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(row_1)) * as_type<uint>(part_1.vertical.advance))) + as_type<uint>(part_1.vertical.base)), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(column_1)) * as_type<uint>(part_1.horizontal.advance))) + as_type<uint>(part_1.horizontal.base))};
}

Four four_pixels(
    Part part_2,
    uint first_1,
    constant Params& params
) {
    Pixel _e2 = pixel_of(part_2, first_1, params);
    Pixel _e5 = pixel_of(part_2, first_1 + 1u, params);
    Pixel _e8 = pixel_of(part_2, first_1 + 2u, params);
    Pixel _e11 = pixel_of(part_2, first_1 + 3u, params);
    return Four {_e2, _e5, _e8, _e11};
}

uint terms_of(
    Part part_3,
    constant Params& params
) {
    uint _e4 = params.image.y;
    return (_e4 * part_3.vertical.count) * part_3.horizontal.count;
}

Term term_of(
    Part part_4,
    uint term
) {
    uint horizontal = term % part_4.horizontal.count;
    uint rest = term / part_4.horizontal.count;
    return Term {rest / part_4.vertical.count, rest % part_4.vertical.count, horizontal};
}

float decode(
    uint word,
    uint i,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_1,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_1 : (i_1 >> 1u);
}

float weight_at(
    Part part_5,
    uint channel,
    Term term_1,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 taps = metal::uint2(part_5.vertical.first + (term_1.vertical * part_5.vertical.skip), part_5.horizontal.first + (term_1.horizontal * part_5.horizontal.skip));
    metal::uint4 _e21 = params.weight.strides;
    metal::uint4 steps = _e21 * metal::uint4(channel, term_1.channel, taps);
    uint _e28 = params.weight.offset;
    uint _e33 = params.kernel_.z;
    uint i_10 = ((((_e28 + (part_5.group * _e33)) + steps.x) + steps.y) + steps.z) + steps.w;
    uint _e46 = word_of(i_10, B_DTYPE);
    uint _e48 = weight[_e46];
    float _e50 = decode(_e48, i_10, B_DTYPE);
    return _e50;
}

float weight_or_zero(
    Part part_6,
    uint channel_1,
    Term term_2,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.result.y;
    if (channel_1 >= _e6) {
        return 0.0;
    }
    float _e9 = weight_at(part_6, channel_1, term_2, params, weight, _buffer_sizes);
    return _e9;
}

metal::float4 weight_term(
    Part part_7,
    uint channel_2,
    uint i_2,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = terms_of(part_7, params);
    if (i_2 >= _e3) {
        return metal::float4 {};
    }
    Term _e6 = term_of(part_7, i_2);
    float _e7 = weight_or_zero(part_7, channel_2, _e6, params, weight, _buffer_sizes);
    float _e10 = weight_or_zero(part_7, channel_2 + 1u, _e6, params, weight, _buffer_sizes);
    float _e13 = weight_or_zero(part_7, channel_2 + 2u, _e6, params, weight, _buffer_sizes);
    float _e16 = weight_or_zero(part_7, channel_2 + 3u, _e6, params, weight, _buffer_sizes);
    return metal::float4(_e7, _e10, _e13, _e16);
}

metal::float4x4 weight_block(
    Part part_8,
    uint channel_3,
    uint i_3,
    constant Params& params,
    device type_8 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = weight_term(part_8, channel_3, i_3, params, weight, _buffer_sizes);
    metal::float4 _e6 = weight_term(part_8, channel_3, i_3 + 1u, params, weight, _buffer_sizes);
    metal::float4 _e9 = weight_term(part_8, channel_3, i_3 + 2u, params, weight, _buffer_sizes);
    metal::float4 _e12 = weight_term(part_8, channel_3, i_3 + 3u, params, weight, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

float image_at(
    Part part_9,
    Pixel pixel_1,
    Term term_3,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    int row_2 = as_type<int>(as_type<uint>(pixel_1.row) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(term_3.vertical)) * as_type<uint>(part_9.vertical.hop))));
    int column_2 = as_type<int>(as_type<uint>(pixel_1.column) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(term_3.horizontal)) * as_type<uint>(part_9.horizontal.hop))));
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
    metal::uint3 steps_1 = _e57.yzw * metal::uint3(term_3.channel, static_cast<uint>(row_2), static_cast<uint>(column_2));
    uint i_11 = ((pixel_1.base + steps_1.x) + steps_1.y) + steps_1.z;
    uint _e73 = word_of(i_11, A_DTYPE);
    uint _e75 = x[_e73];
    float _e77 = decode(_e75, i_11, A_DTYPE);
    return _e77;
}

metal::float4 image_term(
    Part part_10,
    Four pixels,
    uint i_4,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = terms_of(part_10, params);
    if (i_4 >= _e3) {
        return metal::float4 {};
    }
    Term _e6 = term_of(part_10, i_4);
    float _e8 = image_at(part_10, pixels.p0_, _e6, params, x, _buffer_sizes);
    float _e10 = image_at(part_10, pixels.p1_, _e6, params, x, _buffer_sizes);
    float _e12 = image_at(part_10, pixels.p2_, _e6, params, x, _buffer_sizes);
    float _e14 = image_at(part_10, pixels.p3_, _e6, params, x, _buffer_sizes);
    return metal::float4(_e8, _e10, _e12, _e14);
}

metal::float4x4 image_block(
    Part part_11,
    Four pixels_1,
    uint i_5,
    constant Params& params,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e3 = image_term(part_11, pixels_1, i_5, params, x, _buffer_sizes);
    metal::float4 _e6 = image_term(part_11, pixels_1, i_5 + 1u, params, x, _buffer_sizes);
    metal::float4 _e9 = image_term(part_11, pixels_1, i_5 + 2u, params, x, _buffer_sizes);
    metal::float4 _e12 = image_term(part_11, pixels_1, i_5 + 3u, params, x, _buffer_sizes);
    return metal::float4x4(_e3, _e6, _e9, _e12);
}

metal::float4x4 tile_load(
    Part part_12,
    Four pixels_2,
    uint channel_4,
    Share share,
    uint k,
    constant Params& params,
    device type_8 const& weight,
    device type_8 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (!(share.any)) {
        return metal::float4x4 {};
    }
    if (share.is_b) {
        metal::float4x4 _e13 = weight_block(part_12, channel_4 + share.line, k + share.k, params, weight, _buffer_sizes);
        return _e13;
    }
    metal::float4x4 _e16 = image_block(part_12, pixels_2, k + share.k, params, x, _buffer_sizes);
    return _e16;
}

uint tile_place(
    uint group,
    uint k_1
) {
    return ((k_1 * 16u) * TILE_GROUPS) + (group ^ (((k_1 >> 2u) & 3u) << 1u));
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
    uint _e8 = tile_place(share_1.line / 4u, share_1.k);
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

Sums hot_term(
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

Sums hot_terms(
    Sums sums_2,
    uint lane_2,
    uint k_2,
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
) {
    Sums next_1 = {};
    uint _e9 = tile_place(lane_2 >> 4u, k_2);
    uint _e12 = tile_place(lane_2 & 15u, k_2);
    Sums _e13 = hot_term(sums_2, _e9, _e12, tile_b, tile_a);
    next_1 = _e13;
    Sums _e15 = next_1;
    Sums _e18 = hot_term(_e15, _e9 + 16u, _e12 + 16u, tile_b, tile_a);
    next_1 = _e18;
    Sums _e19 = next_1;
    Sums _e26 = hot_term(_e19, _e9 + 32u, _e12 + 32u, tile_b, tile_a);
    next_1 = _e26;
    Sums _e27 = next_1;
    Sums _e34 = hot_term(_e27, _e9 + 48u, _e12 + 48u, tile_b, tile_a);
    return _e34;
}

Sums tile_multiply(
    Sums sums_3,
    uint lane_3,
    threadgroup type_10& tile_b,
    threadgroup type_10& tile_a
) {
    Sums next_2 = {};
    uint k_3 = 0u;
    next_2 = sums_3;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e11 = k_3;
            k_3 = _e11 + 4u;
        }
        loop_init_1 = false;
        uint _e5 = k_3;
        uint _e6 = tile_depth();
        if (_e5 < _e6) {
        } else {
            break;
        }
        {
            Sums _e8 = next_2;
            uint _e9 = k_3;
            Sums _e10 = hot_terms(_e8, lane_3, _e9, tile_b, tile_a);
            next_2 = _e10;
        }
    }
    Sums _e14 = next_2;
    return _e14;
}

uint place_of(
    View view,
    Part part_13,
    uint pixel_2,
    uint channel_5,
    constant Params& params
) {
    uint _e10 = params.horizontal.x;
    uint column_3 = part_13.column + ((pixel_2 % part_13.columns) * _e10);
    uint _e21 = params.vertical.x;
    uint row_3 = part_13.row + (((pixel_2 / part_13.columns) % part_13.rows) * _e21);
    uint batch_1 = (pixel_2 / part_13.columns) / part_13.rows;
    uint _e33 = params.result.y;
    metal::uint4 steps_2 = view.strides * metal::uint4(batch_1, (part_13.group * _e33) + channel_5, row_3, column_3);
    return (((view.offset + steps_2.x) + steps_2.y) + steps_2.z) + steps_2.w;
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

float added(
    Part part_14,
    uint pixel_3,
    uint channel_6,
    float sum,
    constant Params& params,
    device type_8 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e10 = params.c;
        uint _e11 = place_of(_e10, part_14, pixel_3, channel_6, params);
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
    uint i_7,
    float value_1,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_7 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_7 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_7 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

void put_pair(
    uint i_8,
    float first_2,
    float second,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = encode(first_2, OUT_DTYPE);
    uint _e10 = encode(second, OUT_DTYPE);
    metal::atomic_store_explicit(&out[i_8 >> 1u], _e8 | (_e10 << 16u), metal::memory_order_relaxed);
    return;
}

void finish_pair(
    Part part_15,
    uint pixel_4,
    uint channel_7,
    float first_3,
    float second_1,
    constant Params& params,
    device type_8 const& c,
    device type_12& out,
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
    float _e21 = added(part_15, pixel_4, channel_7, first_3, params, c, _buffer_sizes);
    if ((pixel_4 + 1u) >= _e5) {
        put(_e20, _e21, out, _buffer_sizes);
        return;
    }
    View _e27 = params.out;
    uint _e30 = place_of(_e27, part_15, pixel_4 + 1u, channel_7, params);
    float _e33 = added(part_15, pixel_4 + 1u, channel_7, second_1, params, c, _buffer_sizes);
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
    Part part_16,
    uint pixel_5,
    uint channel_8,
    Block sums_4,
    constant Params& params,
    device type_8 const& c,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    finish_pair(part_16, pixel_5, channel_8, sums_4.r0_.x, sums_4.r1_.x, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5, channel_8 + 1u, sums_4.r0_.y, sums_4.r1_.y, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5, channel_8 + 2u, sums_4.r0_.z, sums_4.r1_.z, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5, channel_8 + 3u, sums_4.r0_.w, sums_4.r1_.w, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5 + 2u, channel_8, sums_4.r2_.x, sums_4.r3_.x, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5 + 2u, channel_8 + 1u, sums_4.r2_.y, sums_4.r3_.y, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5 + 2u, channel_8 + 2u, sums_4.r2_.z, sums_4.r3_.z, params, c, out, _buffer_sizes);
    finish_pair(part_16, pixel_5 + 2u, channel_8 + 3u, sums_4.r2_.w, sums_4.r3_.w, params, c, out, _buffer_sizes);
    return;
}

void tiled_convolution(
    Part part_17,
    uint first_pixel,
    uint first_channel,
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
    uint k_4 = 0u;
    Share _e6 = tile_share(lane_4, false, true);
    Four _e9 = four_pixels(part_17, first_pixel + _e6.line, params);
    uint _e10 = terms_of(part_17, params);
    metal::float4x4 _e14 = tile_load(part_17, _e9, first_channel, _e6, 0u, params, weight, x, _buffer_sizes);
    block_1 = _e14;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e27 = k_4;
            uint _e28 = tile_depth();
            k_4 = _e27 + _e28;
        }
        loop_init_2 = false;
        uint _e18 = k_4;
        if (_e18 < _e10) {
        } else {
            break;
        }
        {
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4x4 _e20 = block_1;
            tile_stage(_e6, _e20, tile_b, tile_a);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e21 = k_4;
            uint _e22 = tile_depth();
            metal::float4x4 _e24 = tile_load(part_17, _e9, first_channel, _e6, _e21 + _e22, params, weight, x, _buffer_sizes);
            block_1 = _e24;
            Sums _e25 = sums_5;
            Sums _e26 = tile_multiply(_e25, lane_4, tile_b, tile_a);
            sums_5 = _e26;
        }
    }
    uint pixel_6 = first_pixel + ((lane_4 >> 4u) * 4u);
    uint channel_9 = first_channel + ((lane_4 & 15u) * 4u);
    Block _e41 = sums_5.near;
    finish_block(part_17, pixel_6, channel_9, _e41, params, c, out, _buffer_sizes);
    if (false) {
        Block _e49 = sums_5.right;
        finish_block(part_17, pixel_6, channel_9 + 64u, _e49, params, c, out, _buffer_sizes);
        Block _e53 = sums_5.below;
        finish_block(part_17, pixel_6 + 64u, channel_9, _e53, params, c, out, _buffer_sizes);
        Block _e59 = sums_5.far;
        finish_block(part_17, pixel_6 + 64u, channel_9 + 64u, _e59, params, c, out, _buffer_sizes);
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
    Part _e5 = part_of(0u, params);
    uint _e6 = pixels_of(_e5, params);
    uint tiles = ((_e6 + _e3) - 1u) / _e3;
    uint _e14 = params.result.y;
    uint columns = ((_e14 + _e3) - 1u) / _e3;
    uint _e19 = flat_workgroup(workgroup, workgroups);
    uint _e21 = parts(params);
    if (_e19 >= ((tiles * columns) * _e21)) {
        return;
    }
    uint first_pixel_1 = (_e19 % tiles) * _e3;
    uint first_channel_1 = ((_e19 / tiles) % columns) * _e3;
    Part _e31 = part_of((_e19 / tiles) / columns, params);
    tiled_convolution(_e31, first_pixel_1, first_channel_1, lane, params, weight, x, tile_b, tile_a, c, out, _buffer_sizes);
    return;
}
