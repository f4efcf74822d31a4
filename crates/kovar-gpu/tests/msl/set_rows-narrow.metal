// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
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
};
typedef int type_3[1];
typedef uint type_4[1];
struct Number {
    uint kind;
    bool negative;
    char _pad2[3];
    int exponent;
    uint high;
    uint low;
};
typedef metal::atomic_uint type_10[1];
constant uint BITS_MASK = 4294967295u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint TYPE_F32_ = 0u;
constant uint TYPE_BF16_ = 2u;
constant uint TYPE_F16_ = 1u;
constant uint TYPE_F8E4M3_ = 3u;
constant uint TYPE_F8E5M2_ = 4u;
constant uint ZERO = 0u;
constant uint INFINITE = 2u;
constant uint NO_NUMBER = 3u;
constant uint FINITE = 1u;
constant uint CAST = 0u;
constant uint TO = 6u;
constant uint SHIFT = 2u;
constant uint A_DTYPE = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;
constant uint SPLIT = 0u;

uint bits_of(
    uint word,
    uint i
) {
    return (word >> ((i & 3u) * 8u)) & 255u;
}

float decode(
    uint word_1,
    uint i_1,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word_1);
    }
    uint half_ = (word_1 >> ((i_1 & 1u) << 4u)) & 65535u;
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

uint encode(
    float value,
    uint dtype_2
) {
    uint bits_2 = as_type<uint>(value);
    uint magnitude = bits_2 & 2147483647u;
    if (dtype_2 == BF16_) {
        uint rounded = ((bits_2 + 32767u) + ((bits_2 >> 16u) & 1u)) >> 16u;
        return (magnitude > 2139095040u) ? ((bits_2 >> 16u) | 64u) : rounded;
    }
    uint sign = (bits_2 >> 16u) & 32768u;
    if (magnitude >= 1199566848u) {
        return sign | ((magnitude > 2139095040u) ? 32256u : 31744u);
    }
    if (magnitude < 947912704u) {
        return sign | (as_type<uint>(as_type<float>(magnitude) + 0.5) - 1056964608u);
    }
    return sign | ((((magnitude - 939524096u) + 4095u) + ((magnitude >> 13u) & 1u)) >> 13u);
}

metal::uint2 format_of(
    uint dtype_3
) {
    switch(dtype_3) {
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
    uint dtype_4
) {
    metal::uint2 _e1 = format_of(dtype_4);
    uint infinity = ((1u << _e1.x) - 1u) << _e1.y;
    return (dtype_4 == TYPE_F8E4M3_) ? 126u : (infinity - 1u);
}

uint encode_float(
    Number number,
    uint dtype_5
) {
    uint kept = 0u;
    uint rest = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    metal::uint2 _e2 = format_of(dtype_5);
    uint sign_1 = number.negative ? (1u << (_e2.x + _e2.y)) : 0u;
    uint _e11 = greatest_of(dtype_5);
    if (number.kind == ZERO) {
        return sign_1;
    }
    if (number.kind == INFINITE) {
        return sign_1 | (_e11 + 1u);
    }
    if (number.kind == NO_NUMBER) {
        return sign_1 | ((dtype_5 == TYPE_F8E4M3_) ? 127u : ((_e11 + 1u) | (1u << (_e2.y - 1u))));
    }
    int least = as_type<int>(as_type<uint>(2) - as_type<uint>(static_cast<int>(1u << (_e2.x - 1u))));
    int shared_exponent = metal::max(number.exponent, least);
    uint dropped = (31u - _e2.y) + static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(number.exponent)));
    rest = number.high;
    if (dropped < 32u) {
        kept = number.high >> dropped;
        rest = number.high << (32u - dropped);
    }
    bool more = number.low != 0u;
    if (dropped <= 32u) {
        uint _e74 = rest;
        if (!((_e74 > 2147483648u))) {
            uint _e79 = rest;
            if (_e79 == 2147483648u) {
                if (!(more)) {
                    uint _e86 = kept;
                    local_4 = (_e86 & 1u) == 1u;
                } else {
                    local_4 = true;
                }
                bool _e92 = local_4;
                local_3 = _e92;
            } else {
                local_3 = false;
            }
            bool _e94 = local_3;
            local_2 = _e94;
        } else {
            local_2 = true;
        }
        bool _e96 = local_2;
        local_1 = _e96;
    } else {
        local_1 = false;
    }
    bool up = local_1;
    uint steps = metal::min(static_cast<uint>(as_type<int>(as_type<uint>(shared_exponent) - as_type<uint>(least))), 1u << _e2.x);
    uint _e107 = kept;
    uint magnitude_1 = ((steps << _e2.y) + _e107) + (up ? 1u : 0u);
    return sign_1 | metal::min(magnitude_1, _e11 + 1u);
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
    bool local_5 = {};
    if (high_1 == 0u) {
        local_5 = low_1 == 0u;
    } else {
        local_5 = false;
    }
    bool _e11 = local_5;
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

Number float_number(
    uint bits,
    uint dtype_6
) {
    metal::uint2 _e2 = format_of(dtype_6);
    bool negative_1 = ((bits >> (_e2.x + _e2.y)) & 1u) == 1u;
    uint most = (1u << _e2.x) - 1u;
    uint biased = (bits >> _e2.y) & most;
    uint mantissa = bits & ((1u << _e2.y) - 1u);
    bool special = (dtype_6 == TYPE_F8E4M3_) ? ((bits & 127u) == 127u) : (biased == most);
    if (special) {
        bool infinite = mantissa == 0u;
        return Number {infinite ? INFINITE : NO_NUMBER, negative_1, {}, 0, 0u, 0u};
    }
    uint whole = mantissa | ((biased != 0u) ? (1u << _e2.y) : 0u);
    int bias = static_cast<int>(((1u << (_e2.x - 1u)) - 1u) + _e2.y);
    Number _e65 = number_of(negative_1, 0u, whole, as_type<int>(as_type<uint>(static_cast<int>(metal::max(biased, 1u))) - as_type<uint>(bias)));
    return _e65;
}

uint bits_at(
    uint i_3,
    device type_4 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (true) {
        uint _e9 = a[i_3 >> SHIFT];
        uint _e10 = bits_of(_e9, i_3);
        return _e10;
    }
    uint _e13 = word_of(i_3, A_DTYPE);
    uint _e15 = a[_e13];
    float _e17 = decode(_e15, i_3, A_DTYPE);
    if (false) {
        return as_type<uint>(_e17);
    }
    if (false) {
        uint _e30 = encode(_e17, TO);
        return _e30;
    }
    Number _e33 = float_number(as_type<uint>(_e17), TYPE_F32_);
    uint _e35 = encode_float(_e33, TO);
    return _e35;
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
    uint y = z / dims_1.z;
    uint x = y / dims_1.y;
    return metal::uint4(x, y - (x * dims_1.y), z - (y * dims_1.z), i_4 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps_1 = view.strides * at;
    return (((view.offset + steps_1.x) + steps_1.y) + steps_1.z) + steps_1.w;
}

void put_bits(
    uint i_5,
    uint bits_1,
    device type_10& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint position_1 = (i_5 & 3u) * 8u;
    uint _e25 = metal::atomic_fetch_and_explicit(&out[i_5 >> SHIFT], ~((255u << position_1)), metal::memory_order_relaxed);
    uint _e31 = metal::atomic_fetch_or_explicit(&out[i_5 >> SHIFT], bits_1 << position_1, metal::memory_order_relaxed);
    return;
}

void put_word(
    uint i_6,
    uint word_2,
    device type_10& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::atomic_store_explicit(&out[i_6 >> SHIFT], word_2, metal::memory_order_relaxed);
    return;
}

struct set_rowsInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void set_rows(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3 const& ids [[user(fake0)]]
, device type_4 const& a [[user(fake0)]]
, device type_10& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    bool local = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number_1 = ((_e3 * WORKGROUP) + lane) * PER;
    uint half_1 = number_1 & SPLIT;
    uint first = number_1 >> SPLIT;
    metal::uint4 dims_2 = params.dims;
    uint _e16 = count_of(dims_2);
    if (first >= _e16) {
        return;
    }
    metal::uint4 _e18 = unravel(first, dims_2);
    uint _e23 = params.rows.z;
    uint _e28 = params.rows.w;
    int id_1 = ids[_e23 + (_e18.x * _e28)];
    uint _e37 = params.rows.x;
    uint row = static_cast<uint>(id_1) - _e37;
    if (!((id_1 < 0))) {
        uint _e47 = params.rows.y;
        local = row >= _e47;
    } else {
        local = true;
    }
    bool _e50 = local;
    if (_e50) {
        return;
    }
    View _e53 = params.a;
    uint _e54 = position(_e53, _e18);
    uint source = (_e54 << SPLIT) | half_1;
    View _e60 = params.out;
    uint _e63 = position(_e60, metal::uint4(row, _e18.yzw));
    uint place = (_e63 << SPLIT) | half_1;
    uint step = params.a.strides.w;
    if (true) {
        uint _e76 = bits_at(source, a, _buffer_sizes);
        put_bits(place, _e76, out, _buffer_sizes);
        return;
    } else {
        if (false) {
            uint _e81 = bits_at(source, a, _buffer_sizes);
            uint _e83 = bits_at(source + step, a, _buffer_sizes);
            put_word(place, _e81 | (_e83 << 16u), out, _buffer_sizes);
            return;
        } else {
            uint _e87 = bits_at(source, a, _buffer_sizes);
            uint _e89 = bits_at(source + step, a, _buffer_sizes);
            uint pair = _e87 | (_e89 << 8u);
            uint _e96 = bits_at(source + (2u * step), a, _buffer_sizes);
            uint _e103 = bits_at(source + (3u * step), a, _buffer_sizes);
            put_word(place, (pair | (_e96 << 16u)) | (_e103 << 24u), out, _buffer_sizes);
            return;
        }
    }
}
