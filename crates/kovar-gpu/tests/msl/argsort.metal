// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
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
struct type_4 {
    metal::uint2 inner[2048];
};
constant metal::uint2 NOTHING = metal::uint2(4294967295u, 4294967295u);
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint FROM_PAIRS = 0u;
constant uint TO_PAIRS = 1u;
constant uint A_DTYPE = 0u;

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

metal::uint4 unravel(
    uint i_1,
    metal::uint4 dims
) {
    if (((dims.x * dims.y) * dims.z) == 1u) {
        return metal::uint4(0u, 0u, 0u, i_1);
    }
    uint z = i_1 / dims.w;
    if ((dims.x * dims.y) == 1u) {
        return metal::uint4(0u, 0u, z, i_1 - (z * dims.w));
    }
    uint y_1 = z / dims.z;
    uint x_2 = y_1 / dims.y;
    return metal::uint4(x_2, y_1 - (x_2 * dims.y), z - (y_1 * dims.z), i_1 - (z * dims.w));
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

uint order_key(
    float x_1
) {
    uint bits = as_type<uint>(x_1);
    uint magnitude = bits & 2147483647u;
    if (magnitude > 2139095040u) {
        return 4294967295u;
    }
    if (magnitude == 0u) {
        return 2147483648u;
    }
    return (bits >= 2147483648u) ? ~(bits) : (bits | 2147483648u);
}

float decode(
    uint word,
    uint i_2,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i_2 & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_3,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_3 : (i_3 >> 1u);
}

float a_at(
    uint i_4,
    device type_2 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_4, A_DTYPE);
    return _e7;
}

metal::uint2 load(
    uint row,
    uint i_5,
    constant Params& params,
    device type_2 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_3 = {};
    uint _e4 = params.rows;
    if (!((row >= _e4))) {
        uint _e12 = params.dims.w;
        local_3 = i_5 >= _e12;
    } else {
        local_3 = true;
    }
    bool _e15 = local_3;
    if (_e15) {
        return NOTHING;
    }
    if (false) {
        uint _e25 = params.dims.w;
        uint at_1 = 2u * ((row * _e25) + i_5);
        uint _e31 = a[at_1];
        uint _e36 = a[at_1 + 1u];
        return metal::uint2(_e31, _e36);
    }
    uint _e40 = params.first_row;
    metal::uint4 _e45 = params.dims;
    metal::uint4 _e48 = unravel(_e40 + row, metal::uint4(1u, _e45.xyz));
    View _e51 = params.a;
    uint _e55 = position(_e51, metal::uint4(_e48.yzw, 0u));
    uint _e60 = params.a.strides.w;
    float _e63 = a_at(_e55 + (i_5 * _e60), a, _buffer_sizes);
    uint _e64 = order_key(_e63);
    uint _e68 = params.descending;
    return metal::uint2((_e68 == 1u) ? ~(_e64) : _e64, i_5);
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

struct argsortInput {
};
[[max_total_threads_per_threadgroup(256)]] kernel void argsort(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_2& results [[user(fake0)]]
, threadgroup type_4& pairs
, device type_2 const& a [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint slot = {};
    uint stage = {};
    uint reach = {};
    uint i = {};
    bool local = {};
    uint slot_1 = {};
    uint _e6 = params.log2_block;
    uint block_len = 1u << _e6;
    uint _e8 = flat_workgroup(workgroup, workgroups);
    uint _e11 = params.log2_group;
    uint _e14 = params.log2_block;
    uint first = _e8 << (_e11 - _e14);
    uint _e20 = params.log2_group;
    uint group_len = 1u << _e20;
    slot = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e50 = slot;
            slot = _e50 + 256u;
        }
        loop_init = false;
        uint _e23 = slot;
        if (_e23 < group_len) {
        } else {
            break;
        }
        {
            uint _e25 = slot;
            uint _e28 = params.log2_block;
            uint block = first + (_e25 >> _e28);
            uint _e33 = params.blocks;
            uint row_1 = block / _e33;
            uint _e37 = params.blocks;
            uint start = (block - (row_1 * _e37)) * block_len;
            uint _e42 = slot;
            uint _e44 = slot;
            metal::uint2 _e49 = load(row_1, start + (_e44 & (block_len - 1u)), params, a, _buffer_sizes);
            pairs.inner[_e42] = _e49;
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e55 = params.first_stage;
    stage = _e55;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e137 = stage;
            stage = _e137 << 1u;
        }
        loop_init_1 = false;
        uint _e57 = stage;
        uint _e60 = params.last_stage;
        if (_e57 <= _e60) {
        } else {
            break;
        }
        {
            uint _e62 = stage;
            reach = metal::min(_e62, block_len) >> 1u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e134 = reach;
                    reach = _e134 >> 1u;
                }
                loop_init_2 = false;
                uint _e67 = reach;
                if (_e67 > 0u) {
                } else {
                    break;
                }
                {
                    i = lane;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e131 = i;
                            i = _e131 + 256u;
                        }
                        loop_init_3 = false;
                        uint _e71 = i;
                        if (_e71 < (group_len / 2u)) {
                        } else {
                            break;
                        }
                        {
                            uint _e75 = i;
                            uint _e76 = reach;
                            uint low = _e75 & (_e76 - 1u);
                            uint _e80 = i;
                            uint slot_2 = ((_e80 - low) << 1u) | low;
                            uint _e87 = params.log2_block;
                            uint _e92 = params.blocks;
                            uint block_1 = (first + (slot_2 >> _e87)) % _e92;
                            uint _e96 = params.log2_block;
                            uint at_2 = (block_1 << _e96) + (slot_2 & (block_len - 1u));
                            metal::uint2 x_3 = pairs.inner[slot_2];
                            uint _e106 = reach;
                            metal::uint2 y_2 = pairs.inner[slot_2 + _e106];
                            uint _e110 = stage;
                            uint _e113 = params.row_stage;
                            if (_e110 < _e113) {
                                uint _e117 = stage;
                                local = (at_2 & _e117) != 0u;
                            } else {
                                local = false;
                            }
                            bool falls = local;
                            bool _e123 = is_after(x_3, y_2);
                            if (_e123 != falls) {
                                pairs.inner[slot_2] = y_2;
                                uint _e128 = reach;
                                pairs.inner[slot_2 + _e128] = x_3;
                            }
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
        }
    }
    slot_1 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e235 = slot_1;
            slot_1 = _e235 + 256u;
        }
        loop_init_4 = false;
        uint _e141 = slot_1;
        if (_e141 < group_len) {
        } else {
            break;
        }
        {
            uint _e143 = slot_1;
            uint _e146 = params.log2_block;
            uint block_2 = first + (_e143 >> _e146);
            uint _e151 = params.blocks;
            uint row_2 = block_2 / _e151;
            uint _e153 = slot_1;
            uint i_6 = _e153 & (block_len - 1u);
            uint _e159 = params.rows;
            if (row_2 >= _e159) {
                continue;
            }
            if (true) {
                uint _e167 = params.keep;
                if (i_6 < _e167) {
                    uint _e172 = params.keep;
                    uint at_3 = 2u * ((block_2 * _e172) + i_6);
                    uint _e179 = slot_1;
                    uint _e182 = pairs.inner[_e179].x;
                    results[at_3] = _e182;
                    uint _e188 = slot_1;
                    uint _e191 = pairs.inner[_e188].y;
                    results[at_3 + 1u] = _e191;
                }
            } else {
                uint _e194 = params.blocks;
                uint at_4 = ((block_2 - (row_2 * _e194)) * block_len) + i_6;
                uint _e201 = params.keep;
                if (at_4 < _e201) {
                    uint _e205 = params.first_row;
                    metal::uint4 _e210 = params.dims;
                    metal::uint4 _e213 = unravel(_e205 + row_2, metal::uint4(1u, _e210.xyz));
                    View _e216 = params.out;
                    uint _e220 = position(_e216, metal::uint4(_e213.yzw, 0u));
                    uint _e226 = params.out.strides.w;
                    uint _e231 = slot_1;
                    uint _e234 = pairs.inner[_e231].y;
                    results[_e220 + (at_4 * _e226)] = _e234;
                }
            }
        }
    }
    return;
}
