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
    metal::uint4 inner;
    metal::uint4 before;
    View out;
    View a;
    metal::uint4 fill;
};
typedef uint type_2[1];
constant uint BITS_MASK = 4294967295u;
constant uint MODE = 0u;
constant uint SPLIT = 0u;
constant uint SHIFT = 0u;
constant uint WORKGROUP = 256u;
constant uint PER = 1u;

uint position(
    View view,
    metal::uint4 at_1
) {
    metal::uint4 steps = view.strides * at_1;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

uint bits_of(
    uint word_1,
    uint i
) {
    return (word_1 >> ((i & 0u) * 32u)) & 4294967295u;
}

uint moved(
    metal::uint4 at_2,
    uint half_,
    constant Params& params,
    device type_2 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 source = {};
    source = at_2;
    if (false) {
        metal::uint4 _e9 = params.inner;
        source = at_2 % _e9;
    }
    if (false) {
        metal::uint4 _e17 = params.before;
        source = at_2 - _e17;
        metal::uint4 _e19 = source;
        metal::uint4 _e22 = params.inner;
        if (metal::any(_e19 >= _e22)) {
            uint _e28 = params.fill.x;
            uint _e32 = params.fill.y;
            return (half_ == 1u) ? _e32 : _e28;
        }
    }
    View _e38 = params.a;
    metal::uint4 _e39 = source;
    uint _e40 = position(_e38, _e39);
    uint i_4 = (_e40 << SPLIT) | half_;
    uint _e48 = a[i_4 >> SHIFT];
    uint _e49 = bits_of(_e48, i_4);
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

void put_bits(
    uint i_2,
    uint bits,
    device type_2& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_2] = bits;
    return;
}

void put_word(
    uint i_3,
    uint word_2,
    device type_2& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    out[i_3 >> SHIFT] = word_2;
    return;
}

struct rearrangeInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void rearrange(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_2 const& a [[user(fake0)]]
, device type_2& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    metal::uint4 at = {};
    uint word = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number = ((_e3 * WORKGROUP) + lane) * PER;
    uint first = number >> SPLIT;
    uint half_1 = number & SPLIT;
    metal::uint4 dims_2 = params.dims;
    uint _e16 = count_of(dims_2);
    if (first >= _e16) {
        return;
    }
    metal::uint4 _e18 = unravel(first, dims_2);
    at = _e18;
    View _e22 = params.out;
    metal::uint4 _e23 = at;
    uint _e24 = position(_e22, _e23);
    uint place = (_e24 << SPLIT) | half_1;
    if (true) {
        metal::uint4 _e32 = at;
        uint _e33 = moved(_e32, half_1, params, a, _buffer_sizes);
        put_bits(place, _e33, out, _buffer_sizes);
        return;
    }
    metal::uint4 _e34 = at;
    uint _e35 = moved(_e34, half_1, params, a, _buffer_sizes);
    word = _e35;
    uint _e38 = at.w;
    at.w = _e38 + 1u;
    if (false) {
        uint _e45 = word;
        metal::uint4 _e46 = at;
        uint _e47 = moved(_e46, half_1, params, a, _buffer_sizes);
        word = _e45 | (_e47 << 16u);
    } else {
        uint _e51 = word;
        metal::uint4 _e52 = at;
        uint _e53 = moved(_e52, half_1, params, a, _buffer_sizes);
        word = _e51 | (_e53 << 8u);
        uint _e58 = at.w;
        at.w = _e58 + 1u;
        uint _e61 = word;
        metal::uint4 _e62 = at;
        uint _e63 = moved(_e62, half_1, params, a, _buffer_sizes);
        word = _e61 | (_e63 << 16u);
        uint _e68 = at.w;
        at.w = _e68 + 1u;
        uint _e71 = word;
        metal::uint4 _e72 = at;
        uint _e73 = moved(_e72, half_1, params, a, _buffer_sizes);
        word = _e71 | (_e73 << 24u);
    }
    uint _e77 = word;
    put_word(place, _e77, out, _buffer_sizes);
    return;
}
