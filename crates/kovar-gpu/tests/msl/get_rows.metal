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
    View ids;
    metal::uint4 rows;
    metal::uint4 columns;
};
typedef int type_3[1];
typedef uint type_5[1];
constant uint F8E4M3_ = 3u;
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint BITS_MASK = 4294967295u;
constant uint DECODED = 0u;
constant uint FROM = 0u;
constant uint SHIFT = 0u;
constant uint WORKGROUP = 256u;
constant uint SPLIT = 0u;
constant uint PER = 1u;

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
    uint i,
    uint dtype_1
) {
    if (dtype_1 == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i & 1u) << 4u)) & 65535u;
    if (dtype_1 == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

float factor(
    uint word_1,
    uint i_1,
    uint dtype_2
) {
    if (dtype_2 >= F8E4M3_) {
        float _e12 = eight_bits((word_1 >> ((i_1 & 3u) << 3u)) & 255u, dtype_2);
        return _e12;
    }
    float _e13 = decode(word_1, i_1, dtype_2);
    return _e13;
}

uint word_of(
    uint i_2,
    uint dtype_3
) {
    return (dtype_3 == F32_) ? i_2 : (i_2 >> 1u);
}

uint factor_word(
    uint i_3,
    uint dtype_4
) {
    if (dtype_4 >= F8E4M3_) {
        return i_3 >> 2u;
    }
    uint _e6 = word_of(i_3, dtype_4);
    return _e6;
}

uint bits_of(
    uint word_2,
    uint i_4
) {
    return (word_2 >> ((i_4 & 0u) * 32u)) & 4294967295u;
}

uint bits_at(
    uint i_5,
    device type_5 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (false) {
        uint _e7 = factor_word(i_5, FROM);
        uint _e9 = a[_e7];
        float _e11 = factor(_e9, i_5, FROM);
        return as_type<uint>(_e11);
    }
    uint _e17 = a[i_5 >> SHIFT];
    uint _e18 = bits_of(_e17, i_5);
    return _e18;
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
    uint i_6,
    metal::uint4 dims_1
) {
    if (((dims_1.x * dims_1.y) * dims_1.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_6);
    }
    uint z = i_6 / dims_1.w;
    if ((dims_1.x * dims_1.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_6 - (z * dims_1.w));
    }
    uint y = z / dims_1.z;
    uint x = y / dims_1.y;
    return metal::uint4(x, y - (x * dims_1.y), z - (y * dims_1.z), i_6 - (z * dims_1.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

void put_bits(
    uint i_7,
    uint bits_1,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_7] = bits_1;
    return;
}

void put_word(
    uint i_8,
    uint word_3,
    device type_5& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_8 >> SHIFT] = word_3;
    return;
}

struct get_rowsInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void get_rows(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3 const& ids [[user(fake0)]]
, device type_5 const& a [[user(fake0)]]
, device type_5& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number = (_e3 * WORKGROUP) + lane;
    uint half_1 = number & SPLIT;
    uint _e12 = params.columns.x;
    uint per_row = _e12 / PER;
    uint index = (number >> SPLIT) / per_row;
    metal::uint4 dims_2 = params.dims;
    uint _e21 = count_of(dims_2);
    if (index >= _e21) {
        return;
    }
    uint column = ((number >> SPLIT) - (index * per_row)) * PER;
    metal::uint4 _e29 = unravel(index, dims_2);
    View _e33 = params.ids;
    uint _e34 = position(_e33, _e29);
    int id_1 = ids[_e34];
    if (id_1 >= 0) {
        uint _e45 = params.rows.z;
        local = static_cast<uint>(id_1) < _e45;
    } else {
        local = false;
    }
    bool inside = local;
    uint _e53 = params.rows.x;
    uint row = static_cast<uint>(id_1) - _e53;
    if (inside) {
        uint _e60 = params.rows.y;
        local_1 = row >= _e60;
    } else {
        local_1 = false;
    }
    bool _e63 = local_1;
    if (!(_e63)) {
        if (!(inside)) {
            uint _e73 = params.rows.x;
            local_3 = _e73 > 0u;
        } else {
            local_3 = false;
        }
        bool _e77 = local_3;
        local_2 = _e77;
    } else {
        local_2 = true;
    }
    bool _e79 = local_2;
    if (_e79) {
        return;
    }
    View _e82 = params.out;
    uint _e83 = position(_e82, _e29);
    uint _e87 = params.columns.y;
    uint place = ((_e83 + (column * _e87)) << SPLIT) | half_1;
    if (!(inside)) {
        if (true) {
            put_bits(place, 0u, out, _buffer_sizes);
        } else {
            put_word(place, 0u, out, _buffer_sizes);
        }
        return;
    }
    uint step = params.columns.z;
    uint _e107 = params.a.offset;
    uint _e112 = params.a.strides.z;
    uint source = (((_e107 + (row * _e112)) + (column * step)) << SPLIT) | half_1;
    if (true) {
        uint _e124 = bits_at(source, a, _buffer_sizes);
        put_bits(place, _e124, out, _buffer_sizes);
        return;
    } else {
        if (false) {
            uint _e129 = bits_at(source, a, _buffer_sizes);
            uint _e131 = bits_at(source + step, a, _buffer_sizes);
            put_word(place, _e129 | (_e131 << 16u), out, _buffer_sizes);
            return;
        } else {
            uint _e135 = bits_at(source, a, _buffer_sizes);
            uint _e137 = bits_at(source + step, a, _buffer_sizes);
            uint pair = _e135 | (_e137 << 8u);
            uint _e144 = bits_at(source + (2u * step), a, _buffer_sizes);
            uint _e151 = bits_at(source + (3u * step), a, _buffer_sizes);
            put_word(place, (pair | (_e144 << 16u)) | (_e151 << 24u), out, _buffer_sizes);
            return;
        }
    }
}
