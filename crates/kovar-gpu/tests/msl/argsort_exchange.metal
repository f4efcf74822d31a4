// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
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
    uint first_row;
    uint rows;
    uint log2_block;
    uint log2_group;
    uint blocks;
    uint first_stage;
    uint last_stage;
    uint row_stage;
    uint keep;
    uint descending;
    char _pad13[8];
};
typedef uint type_2[1];
constant metal::uint2 NOTHING = metal::uint2(4294967295u, 4294967295u);
constant uint F32_ = 0u;
constant uint BF16_ = 2u;

bool is_after(
    metal::uint2 x,
    metal::uint2 y
) {
    bool local_1 = {};
    bool local_2 = {};
    if (!((x.x > y.x))) {
        if (x.x == y.x) {
            local_2 = x.y > y.y;
        } else {
            local_2 = false;
        }
        bool _e17 = local_2;
        local_1 = _e17;
    } else {
        local_1 = true;
    }
    bool _e19 = local_1;
    return _e19;
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

struct argsort_exchangeInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void argsort_exchange(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_2& results [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    bool local = {};
    uint n = params.dims.w;
    uint _e7 = flat_workgroup(workgroup, workgroups);
    uint i = (_e7 * 256u) + lane;
    uint _e13 = params.rows;
    if (i >= (_e13 * (n >> 1u))) {
        return;
    }
    uint reach = params.keep;
    uint low = i & (reach - 1u);
    uint at = ((i - low) << 1u) | low;
    uint other = at + reach;
    uint _e33 = results[2u * at];
    uint _e40 = results[(2u * at) + 1u];
    metal::uint2 x_1 = metal::uint2(_e33, _e40);
    uint _e46 = results[2u * other];
    uint _e53 = results[(2u * other) + 1u];
    metal::uint2 y_1 = metal::uint2(_e46, _e53);
    uint _e57 = params.last_stage;
    if (_e57 < n) {
        uint _e63 = params.last_stage;
        local = (at & _e63) != 0u;
    } else {
        local = false;
    }
    bool falls = local;
    bool _e69 = is_after(x_1, y_1);
    if (_e69 != falls) {
        results[2u * at] = y_1.x;
        results[(2u * at) + 1u] = y_1.y;
        results[2u * other] = x_1.x;
        results[(2u * other) + 1u] = x_1.y;
        return;
    } else {
        return;
    }
}
