// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
    uint size4;
};

struct Sums {
    metal::float4 first;
    metal::float4 second;
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
struct Pixel {
    bool any;
    char _pad1[3];
    uint base;
    int row;
    int column;
};
struct Tap {
    uint channel;
    uint vertical;
    uint horizontal;
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
typedef uint type_6[1];
struct type_9 {
    Pixel inner[2];
};
struct Corner {
    bool inside;
    char _pad1[3];
    Phase phase;
    uint pixel;
    uint channel;
};
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint B_DTYPE = 0u;
constant uint A_DTYPE = 0u;
constant uint WORKGROUP = 128u;
constant uint ADJOINT = 0u;
constant uint ADDEND = 1u;
constant uint C_DTYPE = 0u;

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
    Phase phase,
    uint channel,
    Tap tap,
    constant Params& params,
    device type_6 const& weight,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 taps = metal::uint2(phase.vertical.first + (tap.vertical * phase.vertical.skip), phase.horizontal.first + (tap.horizontal * phase.horizontal.skip));
    metal::uint4 _e21 = params.weight.strides;
    metal::uint4 steps = _e21 * metal::uint4(channel, tap.channel, taps);
    uint _e28 = params.weight.offset;
    uint _e33 = params.kernel_.z;
    uint i_7 = ((((_e28 + (phase.group * _e33)) + steps.x) + steps.y) + steps.z) + steps.w;
    uint _e46 = word_of(i_7, B_DTYPE);
    uint _e48 = weight[_e46];
    float _e50 = decode(_e48, i_7, B_DTYPE);
    return _e50;
}

float image_at(
    Phase phase_1,
    Pixel pixel,
    Tap tap_1,
    constant Params& params,
    device type_6 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    int row = as_type<int>(as_type<uint>(pixel.row) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_1.vertical)) * as_type<uint>(phase_1.vertical.hop))));
    int column = as_type<int>(as_type<uint>(pixel.column) + as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(tap_1.horizontal)) * as_type<uint>(phase_1.horizontal.hop))));
    if (row >= 0) {
        uint _e25 = params.image.z;
        local = static_cast<uint>(row) < _e25;
    } else {
        local = false;
    }
    bool _e28 = local;
    if (_e28) {
        local_1 = column >= 0;
    } else {
        local_1 = false;
    }
    bool _e34 = local_1;
    if (_e34) {
        uint _e41 = params.image.w;
        local_2 = static_cast<uint>(column) < _e41;
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
    metal::uint3 steps_1 = _e57.yzw * metal::uint3(tap_1.channel, static_cast<uint>(row), static_cast<uint>(column));
    uint i_8 = ((pixel.base + steps_1.x) + steps_1.y) + steps_1.z;
    uint _e73 = word_of(i_8, A_DTYPE);
    uint _e75 = x[_e73];
    float _e77 = decode(_e75, i_8, A_DTYPE);
    return _e77;
}

Sums hot_tap(
    Phase phase_2,
    type_9 pixels,
    uint channel_1,
    Tap tap_2,
    Sums sums_1,
    constant Params& params,
    device type_6 const& weight,
    device type_6 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e8 = params.result.y;
    uint last = _e8 - 1u;
    float _e11 = weight_at(phase_2, channel_1, tap_2, params, weight, _buffer_sizes);
    float _e15 = weight_at(phase_2, metal::min(channel_1 + 1u, last), tap_2, params, weight, _buffer_sizes);
    float _e19 = weight_at(phase_2, metal::min(channel_1 + 2u, last), tap_2, params, weight, _buffer_sizes);
    float _e23 = weight_at(phase_2, metal::min(channel_1 + 3u, last), tap_2, params, weight, _buffer_sizes);
    metal::float4 weights = metal::float4(_e11, _e15, _e19, _e23);
    float _e26 = image_at(phase_2, pixels.inner[0], tap_2, params, x, _buffer_sizes);
    float _e31 = image_at(phase_2, pixels.inner[1], tap_2, params, x, _buffer_sizes);
    return Sums {metal::fma(weights, metal::float4(_e26), sums_1.first), metal::fma(weights, metal::float4(_e31), sums_1.second)};
}

uint pixels_of(
    Phase phase_3,
    constant Params& params
) {
    uint _e4 = params.image.x;
    return (_e4 * phase_3.rows) * phase_3.columns;
}

int naga_neg(int val) {
    return as_type<int>(-as_type<uint>(val));
}

Taps taps_of(
    metal::uint4 axis,
    metal::uint2 skips,
    uint kernel_,
    uint phase_4
) {
    uint first = 0u;
    if (true) {
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
            int reach = as_type<int>(as_type<uint>(static_cast<int>(phase_4 + axis.w)) - as_type<uint>(static_cast<int>(_e27 * axis.z)));
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
    uint column_1 = index % _e4;
    uint _e9 = params.horizontal.x;
    uint _e14 = params.vertical.x;
    uint row_1 = (index / _e9) % _e14;
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
    Taps _e71 = taps_of(_e62, _e65.xy, _e70, row_1);
    metal::uint4 _e74 = params.horizontal;
    metal::uint4 _e77 = params.skips;
    uint _e82 = params.kernel_.y;
    Taps _e83 = taps_of(_e74, _e77.zw, _e82, column_1);
    return Phase {(index / _e19) / _e24, row_1, column_1, (((_e29 - row_1) + _e34) - 1u) / _e41, (((_e46 - column_1) + _e51) - 1u) / _e58, _e71, _e83};
}

Corner corner_of(
    uint i_3,
    uint pixels_1,
    uint channels,
    constant Params& params
) {
    Phase _e4 = phase_of(0u, params);
    uint _e5 = pixels_of(_e4, params);
    uint rows = ((_e5 + pixels_1) - 1u) / pixels_1;
    uint _e13 = params.result.y;
    uint columns = ((_e13 + channels) - 1u) / channels;
    uint _e21 = params.result.x;
    uint _e25 = params.vertical.x;
    uint _e30 = params.horizontal.x;
    uint phases = (_e21 * _e25) * _e30;
    Phase _e37 = phase_of((i_3 / rows) / columns, params);
    return Corner {i_3 < ((rows * columns) * phases), {}, _e37, (i_3 % rows) * pixels_1, ((i_3 / rows) % columns) * channels};
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

Pixel pixel_of(
    Phase phase_5,
    uint pixel_1,
    constant Params& params
) {
    uint column_2 = pixel_1 % phase_5.columns;
    uint row_2 = (pixel_1 / phase_5.columns) % phase_5.rows;
    uint batch = (pixel_1 / phase_5.columns) / phase_5.rows;
    uint _e16 = params.image.y;
    uint group = phase_5.group * _e16;
    uint _e21 = params.image.x;
    uint _e26 = params.x.offset;
    uint _e31 = params.x.strides.x;
    uint _e38 = params.x.strides.y;
    return Pixel {batch < _e21, {}, (_e26 + (batch * _e31)) + (group * _e38), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(row_2)) * as_type<uint>(phase_5.vertical.advance))) + as_type<uint>(phase_5.vertical.base)), as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(static_cast<int>(column_2)) * as_type<uint>(phase_5.horizontal.advance))) + as_type<uint>(phase_5.horizontal.base))};
}

uint place_of(
    View view,
    Phase phase_6,
    uint pixel_2,
    uint channel_2,
    constant Params& params
) {
    uint _e10 = params.horizontal.x;
    uint column_3 = phase_6.column + ((pixel_2 % phase_6.columns) * _e10);
    uint _e21 = params.vertical.x;
    uint row_3 = phase_6.row + (((pixel_2 / phase_6.columns) % phase_6.rows) * _e21);
    uint batch_1 = (pixel_2 / phase_6.columns) / phase_6.rows;
    uint _e33 = params.result.y;
    metal::uint4 steps_2 = view.strides * metal::uint4(batch_1, (phase_6.group * _e33) + channel_2, row_3, column_3);
    return (((view.offset + steps_2.x) + steps_2.y) + steps_2.z) + steps_2.w;
}

float c_at(
    uint i_4,
    device type_6 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_4, C_DTYPE);
    return _e7;
}

float added(
    Phase phase_7,
    uint pixel_3,
    uint channel_3,
    float sum,
    constant Params& params,
    device type_6 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        View _e10 = params.c;
        uint _e11 = place_of(_e10, phase_7, pixel_3, channel_3, params);
        float _e12 = c_at(_e11, c, _buffer_sizes);
        return sum + _e12;
    }
    return sum;
}

void put(
    uint i_5,
    float value,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_6,
    float first_1,
    float second,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(first_1);
    out[i_6 + 1u] = as_type<uint>(second);
    return;
}

void finish_pair(
    Phase phase_8,
    uint pixel_4,
    uint channel_4,
    float first_2,
    float second_1,
    constant Params& params,
    device type_6 const& c,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_4 = {};
    bool local_5 = {};
    uint _e5 = pixels_of(phase_8, params);
    if (!((pixel_4 >= _e5))) {
        uint _e13 = params.result.y;
        local_4 = channel_4 >= _e13;
    } else {
        local_4 = true;
    }
    bool _e16 = local_4;
    if (_e16) {
        return;
    }
    View _e19 = params.out;
    uint _e20 = place_of(_e19, phase_8, pixel_4, channel_4, params);
    float _e21 = added(phase_8, pixel_4, channel_4, first_2, params, c, _buffer_sizes);
    if ((pixel_4 + 1u) >= _e5) {
        put(_e20, _e21, out, _buffer_sizes);
        return;
    }
    View _e27 = params.out;
    uint _e30 = place_of(_e27, phase_8, pixel_4 + 1u, channel_4, params);
    float _e33 = added(phase_8, pixel_4 + 1u, channel_4, second_1, params, c, _buffer_sizes);
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

struct convolution_directInput {
};
[[max_total_threads_per_threadgroup(128)]] kernel void convolution_direct(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_6 const& weight [[user(fake0)]]
, device type_6 const& x [[user(fake0)]]
, device type_6 const& c [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    Sums sums = Sums {};
    uint i = 0u;
    uint u = {};
    uint v = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    Corner _e9 = corner_of(_e3, 256u, 4u, params);
    if (!(_e9.inside)) {
        return;
    }
    Phase phase_9 = _e9.phase;
    uint pixel_5 = _e9.pixel + (2u * lane);
    uint channel_5 = _e9.channel;
    Pixel _e18 = pixel_of(phase_9, pixel_5, params);
    Pixel _e21 = pixel_of(phase_9, pixel_5 + 1u, params);
    type_9 pixels_2 = type_9 {{_e18, _e21}};
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e58 = i;
            i = _e58 + 1u;
        }
        loop_init_1 = false;
        uint _e27 = i;
        uint _e31 = params.image.y;
        if (_e27 < _e31) {
        } else {
            break;
        }
        {
            u = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e55 = u;
                    u = _e55 + 1u;
                }
                loop_init_2 = false;
                uint _e35 = u;
                if (_e35 < _e9.phase.vertical.count) {
                } else {
                    break;
                }
                {
                    v = 0u;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e52 = v;
                            v = _e52 + 1u;
                        }
                        loop_init_3 = false;
                        uint _e41 = v;
                        if (_e41 < _e9.phase.horizontal.count) {
                        } else {
                            break;
                        }
                        {
                            uint _e45 = i;
                            uint _e46 = u;
                            uint _e47 = v;
                            Sums _e49 = sums;
                            Sums _e50 = hot_tap(phase_9, pixels_2, channel_5, Tap {_e45, _e46, _e47}, _e49, params, weight, x, _buffer_sizes);
                            sums = _e50;
                        }
                    }
                }
            }
        }
    }
    float _e62 = sums.first.x;
    float _e65 = sums.second.x;
    finish_pair(phase_9, pixel_5, channel_5, _e62, _e65, params, c, out, _buffer_sizes);
    float _e70 = sums.first.y;
    float _e73 = sums.second.y;
    finish_pair(phase_9, pixel_5, channel_5 + 1u, _e70, _e73, params, c, out, _buffer_sizes);
    float _e78 = sums.first.z;
    float _e81 = sums.second.z;
    finish_pair(phase_9, pixel_5, channel_5 + 2u, _e78, _e81, params, c, out, _buffer_sizes);
    float _e86 = sums.first.w;
    float _e89 = sums.second.w;
    finish_pair(phase_9, pixel_5, channel_5 + 3u, _e86, _e89, params, c, out, _buffer_sizes);
    return;
}
