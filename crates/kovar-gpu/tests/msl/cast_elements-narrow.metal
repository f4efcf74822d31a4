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
    metal::uint4 from_to;
};
typedef uint type_2[1];
struct Number {
    uint kind;
    bool negative;
    char _pad2[3];
    int exponent;
    uint high;
    uint low;
};
typedef metal::atomic_uint type_8[1];
constant uint TYPE_F64_ = 5u;
constant uint ZERO = 0u;
constant uint INFINITE = 2u;
constant uint NO_NUMBER = 3u;
constant uint TYPE_I8_ = 6u;
constant uint FINITE = 1u;
constant uint TYPE_U8_ = 7u;
constant uint TYPE_I16_ = 8u;
constant uint TYPE_I32_ = 9u;
constant uint TYPE_I64_ = 10u;
constant uint TYPE_BOOL = 11u;
constant uint TYPE_F16_ = 1u;
constant uint TYPE_BF16_ = 2u;
constant uint TYPE_F8E4M3_ = 3u;
constant uint TYPE_F8E5M2_ = 4u;
constant uint BITS_MASK = 4294967295u;
constant uint PAIRS = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;
constant uint SHIFT = 1u;

metal::uint2 encode_double(
    Number number
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    uint sign = number.negative ? 2147483648u : 0u;
    switch(number.kind) {
        case 0u: {
            return metal::uint2(0u, sign);
        }
        case 2u: {
            return metal::uint2(0u, sign | 2146435072u);
        }
        case 3u: {
            return metal::uint2(0u, sign | 2146959360u);
        }
        default: {
            break;
        }
    }
    uint low_4 = (number.low >> 11u) | (number.high << 21u);
    uint rest_1 = number.low & 2047u;
    if (!((rest_1 > 1024u))) {
        if (rest_1 == 1024u) {
            local_1 = (low_4 & 1u) == 1u;
        } else {
            local_1 = false;
        }
        bool _e40 = local_1;
        local = _e40;
    } else {
        local = true;
    }
    bool up = local;
    uint rounded = low_4 + (up ? 1u : 0u);
    if (up) {
        local_2 = rounded == 0u;
    } else {
        local_2 = false;
    }
    bool _e54 = local_2;
    uint carry = _e54 ? 1u : 0u;
    uint high_4 = ((static_cast<uint>(as_type<int>(as_type<uint>(number.exponent) + as_type<uint>(1022))) << 20u) + (number.high >> 11u)) + carry;
    return metal::uint2(rounded, sign | high_4);
}

metal::uint2 encode_integer(
    Number number_1,
    uint bits,
    bool is_signed
) {
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    metal::uint2 most = metal::uint2(4294967295u);
    metal::uint2 magnitude = {};
    bool local_6 = {};
    bool local_7 = {};
    metal::uint2 whole = {};
    bool local_8 = {};
    bool local_9 = {};
    if (!((number_1.kind == ZERO))) {
        local_3 = number_1.kind == NO_NUMBER;
    } else {
        local_3 = true;
    }
    bool _e13 = local_3;
    if (!(_e13)) {
        if (number_1.negative) {
            local_5 = !(is_signed);
        } else {
            local_5 = false;
        }
        bool _e22 = local_5;
        local_4 = _e22;
    } else {
        local_4 = true;
    }
    bool _e24 = local_4;
    if (_e24) {
        return metal::uint2(0u);
    }
    uint used = is_signed ? (bits - 1u) : bits;
    if (used < 32u) {
        most = metal::uint2((1u << used) - 1u, 0u);
    } else {
        if (used < 64u) {
            most.y = (1u << (used - 32u)) - 1u;
        }
    }
    if (number_1.negative) {
        uint _e52 = most.x;
        uint low_5 = _e52 + 1u;
        uint _e56 = most.y;
        most = metal::uint2(low_5, _e56 + ((low_5 == 0u) ? 1u : 0u));
    }
    metal::uint2 _e64 = most;
    magnitude = _e64;
    if (number_1.kind == FINITE) {
        local_6 = number_1.exponent < 0;
    } else {
        local_6 = false;
    }
    bool _e75 = local_6;
    if (_e75) {
        magnitude = metal::uint2(0u);
    } else {
        if (number_1.kind == FINITE) {
            local_7 = number_1.exponent < 64;
        } else {
            local_7 = false;
        }
        bool _e87 = local_7;
        if (_e87) {
            uint dropped = static_cast<uint>(as_type<int>(as_type<uint>(63) - as_type<uint>(number_1.exponent)));
            whole = metal::uint2(number_1.low, number_1.high);
            if (dropped >= 32u) {
                whole = metal::uint2(number_1.high >> (dropped - 32u), 0u);
            } else {
                if (dropped > 0u) {
                    uint low_6 = (number_1.low >> dropped) | (number_1.high << (32u - dropped));
                    whole = metal::uint2(low_6, number_1.high >> dropped);
                }
            }
            uint _e117 = whole.y;
            uint _e119 = most.y;
            if (!((_e117 > _e119))) {
                uint _e125 = whole.y;
                uint _e127 = most.y;
                if (_e125 == _e127) {
                    uint _e132 = whole.x;
                    uint _e134 = most.x;
                    local_9 = _e132 > _e134;
                } else {
                    local_9 = false;
                }
                bool _e137 = local_9;
                local_8 = _e137;
            } else {
                local_8 = true;
            }
            bool beyond = local_8;
            metal::uint2 _e140 = whole;
            metal::uint2 _e141 = most;
            magnitude = beyond ? _e141 : _e140;
        }
    }
    if (number_1.negative) {
        uint _e145 = magnitude.y;
        uint _e150 = magnitude.x;
        uint above = ~(_e145) + ((_e150 == 0u) ? 1u : 0u);
        uint _e157 = magnitude.x;
        return metal::uint2(0u - _e157, above);
    }
    metal::uint2 _e160 = magnitude;
    return _e160;
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
    Number number_2,
    uint dtype_2
) {
    uint kept = 0u;
    uint rest = {};
    bool local_10 = {};
    bool local_11 = {};
    bool local_12 = {};
    bool local_13 = {};
    metal::uint2 _e2 = format_of(dtype_2);
    uint sign_1 = number_2.negative ? (1u << (_e2.x + _e2.y)) : 0u;
    uint _e11 = greatest_of(dtype_2);
    if (number_2.kind == ZERO) {
        return sign_1;
    }
    if (number_2.kind == INFINITE) {
        return sign_1 | (_e11 + 1u);
    }
    if (number_2.kind == NO_NUMBER) {
        return sign_1 | ((dtype_2 == TYPE_F8E4M3_) ? 127u : ((_e11 + 1u) | (1u << (_e2.y - 1u))));
    }
    int least = as_type<int>(as_type<uint>(2) - as_type<uint>(static_cast<int>(1u << (_e2.x - 1u))));
    int shared_exponent = metal::max(number_2.exponent, least);
    uint dropped_1 = (31u - _e2.y) + static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(number_2.exponent)));
    rest = number_2.high;
    if (dropped_1 < 32u) {
        kept = number_2.high >> dropped_1;
        rest = number_2.high << (32u - dropped_1);
    }
    bool more = number_2.low != 0u;
    if (dropped_1 <= 32u) {
        uint _e74 = rest;
        if (!((_e74 > 2147483648u))) {
            uint _e79 = rest;
            if (_e79 == 2147483648u) {
                if (!(more)) {
                    uint _e86 = kept;
                    local_13 = (_e86 & 1u) == 1u;
                } else {
                    local_13 = true;
                }
                bool _e92 = local_13;
                local_12 = _e92;
            } else {
                local_12 = false;
            }
            bool _e94 = local_12;
            local_11 = _e94;
        } else {
            local_11 = true;
        }
        bool _e96 = local_11;
        local_10 = _e96;
    } else {
        local_10 = false;
    }
    bool up_1 = local_10;
    uint steps = metal::min(static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(least))), 1u << _e2.x);
    uint _e107 = kept;
    uint magnitude_1 = ((steps << _e2.y) + _e107) + (up_1 ? 1u : 0u);
    return sign_1 | metal::min(magnitude_1, _e11 + 1u);
}

metal::uint2 encode_number(
    Number number_3,
    uint dtype_3
) {
    switch(dtype_3) {
        case 5u: {
            metal::uint2 _e2 = encode_double(number_3);
            return _e2;
        }
        case 6u: {
            metal::uint2 _e5 = encode_integer(number_3, 8u, true);
            return _e5 & metal::uint2(255u, 0u);
        }
        case 7u: {
            metal::uint2 _e12 = encode_integer(number_3, 8u, false);
            return _e12;
        }
        case 8u: {
            metal::uint2 _e15 = encode_integer(number_3, 16u, true);
            return _e15 & metal::uint2(65535u, 0u);
        }
        case 9u: {
            metal::uint2 _e22 = encode_integer(number_3, 32u, true);
            return _e22;
        }
        case 10u: {
            metal::uint2 _e25 = encode_integer(number_3, 64u, true);
            return _e25;
        }
        case 11u: {
            return metal::uint2((number_3.kind == ZERO) ? 0u : 1u, 0u);
        }
        default: {
            uint _e34 = encode_float(number_3, dtype_3);
            return metal::uint2(_e34, 0u);
        }
    }
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
    bool local_14 = {};
    if (high_1 == 0u) {
        local_14 = low_1 == 0u;
    } else {
        local_14 = false;
    }
    bool _e11 = local_14;
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

Number double_number(
    uint high_2,
    uint low_2
) {
    bool local_15 = {};
    bool negative_1 = high_2 >= 2147483648u;
    uint biased = (high_2 >> 20u) & 2047u;
    uint mantissa = high_2 & 1048575u;
    if (biased == 2047u) {
        if (mantissa == 0u) {
            local_15 = low_2 == 0u;
        } else {
            local_15 = false;
        }
        bool infinite = local_15;
        return Number {infinite ? INFINITE : NO_NUMBER, negative_1, {}, 0, 0u, 0u};
    }
    uint whole_1 = mantissa | ((biased != 0u) ? 1048576u : 0u);
    Number _e38 = number_of(negative_1, whole_1, low_2, as_type<int>(as_type<uint>(static_cast<int>(metal::max(biased, 1u))) - as_type<uint>(1075)));
    return _e38;
}

Number integer_number(
    uint high_3,
    uint low_3
) {
    bool negative_2 = high_3 >= 2147483648u;
    uint below = 0u - low_3;
    uint above_1 = ~(high_3) + ((low_3 == 0u) ? 1u : 0u);
    Number _e16 = number_of(negative_2, negative_2 ? above_1 : high_3, negative_2 ? below : low_3, 0);
    return _e16;
}

uint sign_word(
    uint word
) {
    return (word >= 2147483648u) ? 4294967295u : 0u;
}

Number float_number(
    uint bits_1,
    uint dtype_4
) {
    metal::uint2 _e2 = format_of(dtype_4);
    bool negative_3 = ((bits_1 >> (_e2.x + _e2.y)) & 1u) == 1u;
    uint most_1 = (1u << _e2.x) - 1u;
    uint biased_1 = (bits_1 >> _e2.y) & most_1;
    uint mantissa_1 = bits_1 & ((1u << _e2.y) - 1u);
    bool special = (dtype_4 == TYPE_F8E4M3_) ? ((bits_1 & 127u) == 127u) : (biased_1 == most_1);
    if (special) {
        bool infinite_1 = mantissa_1 == 0u;
        return Number {infinite_1 ? INFINITE : NO_NUMBER, negative_3, {}, 0, 0u, 0u};
    }
    uint whole_2 = mantissa_1 | ((biased_1 != 0u) ? (1u << _e2.y) : 0u);
    int bias = static_cast<int>(((1u << (_e2.x - 1u)) - 1u) + _e2.y);
    Number _e65 = number_of(negative_3, 0u, whole_2, as_type<int>(as_type<uint>(static_cast<int>(metal::max(biased_1, 1u))) - as_type<uint>(bias)));
    return _e65;
}

Number decode_number(
    metal::uint2 words,
    uint dtype_5
) {
    switch(dtype_5) {
        case 5u: {
            Number _e4 = double_number(words.y, words.x);
            return _e4;
        }
        case 6u: {
            uint word_2 = words.x | (((words.x & 128u) != 0u) ? 4294967040u : 0u);
            uint _e15 = sign_word(word_2);
            Number _e16 = integer_number(_e15, word_2);
            return _e16;
        }
        case 7u: {
            Number _e19 = integer_number(0u, words.x);
            return _e19;
        }
        case 8u: {
            uint word_3 = words.x | (((words.x & 32768u) != 0u) ? 4294901760u : 0u);
            uint _e30 = sign_word(word_3);
            Number _e31 = integer_number(_e30, word_3);
            return _e31;
        }
        case 9u: {
            uint _e33 = sign_word(words.x);
            Number _e35 = integer_number(_e33, words.x);
            return _e35;
        }
        case 10u: {
            Number _e38 = integer_number(words.y, words.x);
            return _e38;
        }
        case 11u: {
            Number _e43 = integer_number(0u, metal::min(words.x, 1u));
            return _e43;
        }
        default: {
            Number _e45 = float_number(words.x, dtype_5);
            return _e45;
        }
    }
}

metal::uint2 cast_of(
    uint i,
    constant Params& params,
    device type_2 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 words_1 = metal::uint2(0u);
    metal::uint4 kind = params.from_to;
    if (kind.w == 1u) {
        uint _e14 = a[2u * i];
        uint _e21 = a[(2u * i) + 1u];
        words_1 = metal::uint2(_e14, _e21);
    } else {
        uint width = 32u >> kind.z;
        uint shift_1 = (i & ((1u << kind.z) - 1u)) * width;
        uint _e38 = a[i >> kind.z];
        words_1.x = (_e38 >> shift_1) & (4294967295u >> (32u - width));
    }
    metal::uint2 _e45 = words_1;
    Number _e47 = decode_number(_e45, kind.x);
    metal::uint2 _e49 = encode_number(_e47, kind.y);
    return _e49;
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
    uint i_1,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_1);
    }
    uint z = i_1 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_1 - (z * dims_1.w));
    }
    uint y = z / dims_1.z;
    uint x = y / dims_1.y;
    return metal::uint4(x, y - (x * dims_1.y), z - (y * dims_1.z), i_1 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps_1 = view.strides * at;
    return (((view.offset + steps_1.x) + steps_1.y) + steps_1.z) + steps_1.w;
}

void put_bits(
    uint i_2,
    uint bits_2,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint position_1 = (i_2 & 1u) * 16u;
    uint _e25 = metal::atomic_fetch_and_explicit(&out[i_2 >> SHIFT], ~((65535u << position_1)), metal::memory_order_relaxed);
    uint _e31 = metal::atomic_fetch_or_explicit(&out[i_2 >> SHIFT], bits_2 << position_1, metal::memory_order_relaxed);
    return;
}

void put_word(
    uint i_3,
    uint word_1,
    device type_8& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::atomic_store_explicit(&out[i_3 >> SHIFT], word_1, metal::memory_order_relaxed);
    return;
}

struct cast_elementsInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void cast_elements(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_2 const& a [[user(fake0)]]
, device type_8& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint first = ((_e3 * WORKGROUP) + lane) * PER;
    metal::uint4 dims_2 = params.dims;
    uint _e12 = count_of(dims_2);
    if (first >= _e12) {
        return;
    }
    metal::uint4 _e14 = unravel(first, dims_2);
    View _e17 = params.out;
    uint _e18 = position(_e17, _e14);
    View _e21 = params.a;
    uint _e22 = position(_e21, _e14);
    uint step = params.a.strides.w;
    metal::uint2 _e28 = cast_of(_e22, params, a, _buffer_sizes);
    if (false) {
        put_bits(2u * _e18, _e28.x, out, _buffer_sizes);
        put_bits((2u * _e18) + 1u, _e28.y, out, _buffer_sizes);
        return;
    } else {
        if (true) {
            put_bits(_e18, _e28.x, out, _buffer_sizes);
            return;
        } else {
            if (false) {
                metal::uint2 _e52 = cast_of(_e22 + step, params, a, _buffer_sizes);
                put_word(_e18, _e28.x | (_e52.x << 16u), out, _buffer_sizes);
                return;
            } else {
                metal::uint2 _e59 = cast_of(_e22 + step, params, a, _buffer_sizes);
                uint pair = _e28.x | (_e59.x << 8u);
                metal::uint2 _e67 = cast_of(_e22 + (2u * step), params, a, _buffer_sizes);
                metal::uint2 _e75 = cast_of(_e22 + (3u * step), params, a, _buffer_sizes);
                put_word(_e18, (pair | (_e67.x << 16u)) | (_e75.x << 24u), out, _buffer_sizes);
                return;
            }
        }
    }
}
