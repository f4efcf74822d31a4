// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct View {
    metal::uint4 strides;
    uint offset;
    char _pad2[12];
};
struct Params {
    metal::uint4 dims;
    View out;
    View a;
    metal::uint4 rows;
    metal::uint4 columns;
    metal::uint4 first;
    metal::float4 divisor;
};
typedef uint type_5[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint INFINITY_BITS = 2139095040u;
constant uint NAN_BITS = 2143289344u;
constant uint GREATEST = 0u;
constant uint A_DTYPE = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;

metal::uint2 covered(
    uint i,
    metal::uint4 axis
) {
    uint start = i * axis.y;
    uint end = metal::min((start + axis.x) - metal::min(start + axis.x, axis.z), axis.w);
    return metal::uint2(start - metal::min(start, axis.z), end);
}

uint ordered(
    uint bits
) {
    return (bits >= 2147483648u) ? ~(bits) : (bits | 2147483648u);
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

float a_at(
    uint i_3,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_3, A_DTYPE);
    return _e7;
}

bool is_nan(
    float x
) {
    return (as_type<uint>(x) & 2147483647u) > INFINITY_BITS;
}

float or_bits(
    float y,
    uint bits_1,
    bool condition
) {
    return as_type<float>(condition ? bits_1 : as_type<uint>(y));
}

float pooled(
    metal::uint4 at,
    constant Params& params,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint greatest = 0u;
    bool has_nan = false;
    float sum = 0.0;
    uint row = {};
    float of_row = {};
    uint column = {};
    bool local = {};
    uint _e4 = params.a.offset;
    uint _e10 = params.a.strides.x;
    uint _e18 = params.a.strides.y;
    uint image = (_e4 + (at.x * _e10)) + (at.y * _e18);
    uint _e25 = params.first.x;
    metal::uint4 _e29 = params.rows;
    metal::uint2 _e30 = covered(at.z + _e25, _e29);
    metal::uint4 _e34 = params.columns;
    metal::uint2 _e35 = covered(at.w, _e34);
    row = _e30.x;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e100 = row;
            row = _e100 + 1u;
        }
        loop_init = false;
        uint _e44 = row;
        if (_e44 < _e30.y) {
        } else {
            break;
        }
        {
            uint _e47 = row;
            uint _e51 = params.first.y;
            uint _e57 = params.a.strides.z;
            uint start_1 = image + ((_e47 - _e51) * _e57);
            of_row = 0.0;
            column = _e35.x;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e94 = column;
                    column = _e94 + 1u;
                }
                loop_init_1 = false;
                uint _e64 = column;
                if (_e64 < _e35.y) {
                } else {
                    break;
                }
                {
                    uint _e67 = column;
                    uint _e72 = params.a.strides.w;
                    float _e75 = a_at(start_1 + (_e67 * _e72), a, _buffer_sizes);
                    if (false) {
                        uint _e80 = greatest;
                        uint _e82 = ordered(as_type<uint>(_e75));
                        greatest = metal::max(_e80, _e82);
                        bool _e84 = has_nan;
                        if (!(_e84)) {
                            bool _e88 = is_nan(_e75);
                            local = _e88;
                        } else {
                            local = true;
                        }
                        bool _e90 = local;
                        has_nan = _e90;
                    } else {
                        float _e91 = of_row;
                        of_row = _e91 + _e75;
                    }
                }
            }
            float _e96 = sum;
            float _e97 = of_row;
            sum = _e96 + _e97;
        }
    }
    if (false) {
        uint _e106 = greatest;
        uint _e108 = greatest;
        uint _e111 = greatest;
        uint bits_2 = (_e111 >= 2147483648u) ? (_e108 & 2147483647u) : ~(_e106);
        bool _e117 = has_nan;
        float _e118 = or_bits(as_type<float>(bits_2), NAN_BITS, _e117);
        return _e118;
    }
    float inside = static_cast<float>(metal::max((_e30.y - _e30.x) * (_e35.y - _e35.x), 1u));
    float _e129 = sum;
    float _e133 = params.divisor.x;
    float _e137 = params.divisor.x;
    return _e129 / ((_e137 > 0.0) ? _e133 : inside);
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

uint count_of(
    metal::uint4 dims
) {
    return ((dims.x * dims.y) * dims.z) * dims.w;
}

metal::uint4 unravel(
    uint i_4,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_4);
    }
    uint z = i_4 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_4 - (z * dims_1.w));
    }
    uint y_1 = z / dims_1.z;
    uint x_1 = y_1 / dims_1.y;
    return metal::uint4(x_1, y_1 - (x_1 * dims_1.y), z - (y_1 * dims_1.z), i_4 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put(
    uint i_5,
    float value,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_5] = as_type<uint>(value);
    return;
}

void put_pair(
    uint i_6,
    float first,
    float second,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_6] = as_type<uint>(first);
    out[i_6 + 1u] = as_type<uint>(second);
    return;
}

struct pool2dInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void pool2d(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first_1 = ((_e3 * WORKGROUP) + lane) * PER;
    metal::uint4 dims_2 = params.dims;
    uint _e12 = count_of(dims_2);
    if (first_1 >= _e12) {
        return;
    }
    metal::uint4 _e14 = unravel(first_1, dims_2);
    View _e17 = params.out;
    uint _e18 = position(_e17, _e14);
    float _e19 = pooled(_e14, params, a, _buffer_sizes);
    if (true) {
        put(_e18, _e19, out, _buffer_sizes);
        return;
    } else {
        float _e30 = pooled(_e14 + metal::uint4(0u, 0u, 0u, 1u), params, a, _buffer_sizes);
        put_pair(_e18, _e19, _e30, out, _buffer_sizes);
        return;
    }
}
