// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
};

struct Params {
    metal::uint4 start;
    metal::uint4 step;
    metal::uint4 shape;
};
struct Number {
    uint kind;
    bool negative;
    char _pad2[3];
    int exponent;
    uint high;
    uint low;
};
typedef uint type_6[1];
constant uint ZERO = 0u;
constant uint FINITE = 1u;
constant uint TYPE_F16_ = 1u;
constant uint TYPE_BF16_ = 2u;
constant uint TYPE_F8E4M3_ = 3u;
constant uint TYPE_F8E5M2_ = 4u;
constant uint INFINITE = 2u;
constant uint NO_NUMBER = 3u;
constant uint TYPE_F32_ = 0u;
constant uint FLOAT = 0u;
constant uint WORKGROUP = 256u;
constant uint SPLIT = 0u;

metal::uint2 add_wide(
    metal::uint2 a,
    metal::uint2 b
) {
    uint low_2 = a.x + b.x;
    return metal::uint2(low_2, (a.y + b.y) + ((low_2 < b.x) ? 1u : 0u));
}

metal::uint2 mul_wide(
    uint a_1,
    uint b_1
) {
    uint low_3 = (a_1 & 65535u) * (b_1 & 65535u);
    uint first = ((a_1 >> 16u) * (b_1 & 65535u)) + (low_3 >> 16u);
    uint second = ((a_1 & 65535u) * (b_1 >> 16u)) + (first & 65535u);
    uint high_2 = (((a_1 >> 16u) * (b_1 >> 16u)) + (first >> 16u)) + (second >> 16u);
    return metal::uint2((second << 16u) | (low_3 & 65535u), high_2);
}

metal::uint3 progressed(
    metal::uint4 a_2,
    metal::uint4 b_2,
    uint i
) {
    metal::uint2 _e4 = mul_wide(b_2.x, i);
    metal::uint2 _e8 = add_wide(_e4, metal::uint2(a_2.x, 0u));
    metal::uint2 _e10 = mul_wide(b_2.y, i);
    metal::uint2 _e14 = add_wide(_e10, metal::uint2(a_2.y, 0u));
    metal::uint2 _e18 = add_wide(_e14, metal::uint2(_e8.y, 0u));
    return metal::uint3(_e8.x, _e18.x, ((b_2.z * i) + a_2.z) + _e18.y);
}

uint funnel(
    uint high,
    uint low,
    uint shift
) {
    return (high << shift) | ((shift == 0u) ? 0u : (low >> (32u - shift)));
}

Number number_of(
    bool negative,
    uint high_1,
    uint low_1,
    int exponent
) {
    bool local = {};
    if (high_1 == 0u) {
        local = low_1 == 0u;
    } else {
        local = false;
    }
    bool _e11 = local;
    if (_e11) {
        return Number {ZERO, negative, {}, 0, 0u, 0u};
    }
    if (high_1 == 0u) {
        uint zeros = metal::clz(low_1);
        return Number {FINITE, negative, {}, as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(exponent) + as_type<uint>(31))) - as_type<uint>(static_cast<int>(zeros))), low_1 << zeros, 0u};
    }
    uint zeros_1 = metal::clz(high_1);
    uint _e29 = funnel(high_1, low_1, zeros_1);
    return Number {FINITE, negative, {}, as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(exponent) + as_type<uint>(63))) - as_type<uint>(static_cast<int>(zeros_1))), _e29, low_1 << zeros_1};
}

Number as_number(
    metal::uint3 number,
    int exponent_1
) {
    metal::uint3 magnitude = {};
    bool local_1 = {};
    bool negative_1 = number.z >= 2147483648u;
    magnitude = number;
    if (negative_1) {
        magnitude = ~(number);
        uint _e8 = magnitude.x;
        magnitude.x = _e8 + 1u;
        uint _e12 = magnitude.y;
        uint _e16 = magnitude.x;
        magnitude.y = _e12 + ((_e16 == 0u) ? 1u : 0u);
        uint _e22 = magnitude.z;
        uint _e26 = magnitude.x;
        if (_e26 == 0u) {
            uint _e32 = magnitude.y;
            local_1 = _e32 == 0u;
        } else {
            local_1 = false;
        }
        bool _e36 = local_1;
        magnitude.z = _e22 + (_e36 ? 1u : 0u);
    }
    uint _e40 = magnitude.z;
    if (_e40 == 0u) {
        uint _e44 = magnitude.y;
        uint _e46 = magnitude.x;
        Number _e47 = number_of(negative_1, _e44, _e46, exponent_1);
        return _e47;
    }
    uint _e49 = magnitude.z;
    uint zeros_2 = metal::clz(_e49);
    uint _e52 = magnitude.z;
    uint _e54 = magnitude.y;
    uint _e55 = funnel(_e52, _e54, zeros_2);
    uint _e57 = magnitude.y;
    uint _e59 = magnitude.x;
    uint _e60 = funnel(_e57, _e59, zeros_2);
    uint _e64 = magnitude.x;
    uint sticky = ((_e64 << zeros_2) != 0u) ? 1u : 0u;
    Number _e74 = number_of(negative_1, _e55, _e60 | sticky, as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(exponent_1) + as_type<uint>(32))) - as_type<uint>(static_cast<int>(zeros_2))));
    return _e74;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

metal::uint2 format_of(
    uint dtype
) {
    switch(dtype) {
        case 1u: {
            return metal::uint2(5u, 10u);
        }
        case 2u: {
            return metal::uint2(8u, 7u);
        }
        case 3u: {
            return metal::uint2(4u, 3u);
        }
        case 4u: {
            return metal::uint2(5u, 2u);
        }
        default: {
            return metal::uint2(8u, 23u);
        }
    }
}

uint greatest_of(
    uint dtype_1
) {
    metal::uint2 _e1 = format_of(dtype_1);
    uint infinity = ((1u << _e1.x) - 1u) << _e1.y;
    return (dtype_1 == TYPE_F8E4M3_) ? 126u : (infinity - 1u);
}

uint encode_float(
    Number number_1,
    uint dtype_2
) {
    uint kept = 0u;
    uint rest = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    metal::uint2 _e2 = format_of(dtype_2);
    uint sign = number_1.negative ? (1u << (_e2.x + _e2.y)) : 0u;
    uint _e11 = greatest_of(dtype_2);
    if (number_1.kind == ZERO) {
        return sign;
    }
    if (number_1.kind == INFINITE) {
        return sign | (_e11 + 1u);
    }
    if (number_1.kind == NO_NUMBER) {
        return sign | ((dtype_2 == TYPE_F8E4M3_) ? 127u : ((_e11 + 1u) | (1u << (_e2.y - 1u))));
    }
    int least = as_type<int>(as_type<uint>(2) - as_type<uint>(static_cast<int>(1u << (_e2.x - 1u))));
    int shared_exponent = metal::max(number_1.exponent, least);
    uint dropped = (31u - _e2.y) + static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(number_1.exponent)));
    rest = number_1.high;
    if (dropped < 32u) {
        kept = number_1.high >> dropped;
        rest = number_1.high << (32u - dropped);
    }
    bool more = number_1.low != 0u;
    if (dropped <= 32u) {
        uint _e74 = rest;
        if (!((_e74 > 2147483648u))) {
            uint _e79 = rest;
            if (_e79 == 2147483648u) {
                if (!(more)) {
                    uint _e86 = kept;
                    local_5 = (_e86 & 1u) == 1u;
                } else {
                    local_5 = true;
                }
                bool _e92 = local_5;
                local_4 = _e92;
            } else {
                local_4 = false;
            }
            bool _e94 = local_4;
            local_3 = _e94;
        } else {
            local_3 = true;
        }
        bool _e96 = local_3;
        local_2 = _e96;
    } else {
        local_2 = false;
    }
    bool up = local_2;
    uint steps = metal::min(static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(least))), 1u << _e2.x);
    uint _e107 = kept;
    uint magnitude_1 = ((steps << _e2.y) + _e107) + (up ? 1u : 0u);
    return sign | metal::min(magnitude_1, _e11 + 1u);
}

void put_bits(
    uint i_1,
    uint bits,
    device type_6& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_1] = bits;
    return;
}

struct arangeInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void arange(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_6& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    metal::uint2 words = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number_2 = (_e3 * WORKGROUP) + lane;
    uint i_2 = number_2 >> SPLIT;
    uint half_ = number_2 & SPLIT;
    uint _e14 = params.shape.x;
    if (i_2 >= _e14) {
        return;
    }
    metal::uint4 _e18 = params.start;
    metal::uint4 _e21 = params.step;
    metal::uint3 _e22 = progressed(_e18, _e21, i_2);
    words = _e22.xy;
    if (false) {
        uint _e33 = params.shape.w;
        Number _e35 = as_number(_e22, as_type<int>(_e33));
        uint _e37 = encode_float(_e35, TYPE_F32_);
        words.x = _e37;
    }
    uint _e41 = params.shape.y;
    uint _e45 = params.shape.z;
    uint place = ((_e41 + (i_2 * _e45)) << SPLIT) | half_;
    uint _e52 = words.x;
    uint _e54 = words.y;
    put_bits(place, (half_ == 1u) ? _e54 : _e52, out, _buffer_sizes);
    return;
}
