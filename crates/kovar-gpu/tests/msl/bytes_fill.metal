// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
};

struct Params {
    uint words;
    uint value;
    uint first_mask;
    uint last_mask;
    uint at;
};
typedef uint type_1[1];
constant uint WORKGROUP = 256u;

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

struct bytes_fillInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void bytes_fill(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_1& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint mask = 4294967295u;
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint i = (_e3 * WORKGROUP) + lane;
    uint _e9 = params.words;
    if (i >= _e9) {
        return;
    }
    if (i == 0u) {
        uint _e17 = params.first_mask;
        mask = _e17;
    }
    uint _e20 = params.words;
    if (i == (_e20 - 1u)) {
        uint _e24 = mask;
        uint _e27 = params.last_mask;
        mask = _e24 & _e27;
    }
    uint _e31 = params.at;
    uint at = _e31 + i;
    uint _e33 = mask;
    if (_e33 == 4294967295u) {
        uint _e40 = params.value;
        out[at] = _e40;
        return;
    } else {
        uint _e45 = out[at];
        uint _e46 = mask;
        uint _e51 = params.value;
        uint _e52 = mask;
        out[at] = (_e45 & ~(_e46)) | (_e51 & _e52);
        return;
    }
}
