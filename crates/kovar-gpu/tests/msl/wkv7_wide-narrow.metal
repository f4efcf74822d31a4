// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size3;
    uint size4;
    uint size5;
    uint size6;
    uint size7;
    uint size8;
    uint size9;
};

struct View {
    metal::uint4 strides;
    uint offset;
    char _pad2[12];
};
struct Params {
    uint tokens;
    uint heads;
    uint n;
    uint log2_lanes;
    uint head_workgroups;
    uint n_valid;
    uint first_token;
    char _pad7[4];
    View out;
    View r;
    View w;
    View k;
    View v;
    View a;
    View b;
    View state;
};
typedef float type_3[1];
struct type_5 {
    metal::int4 inner[16];
};
typedef uint type_6[1];
typedef metal::atomic_uint type_9[1];
constant uint F32_ = 0u;
constant uint BF16_ = 2u;
constant uint B_DTYPE = 1u;
constant uint C_DTYPE = 1u;
constant uint E_DTYPE = 1u;
constant uint F_DTYPE = 1u;
constant uint A_DTYPE = 1u;
constant uint D_DTYPE = 1u;
constant uint OUT_DTYPE = 1u;

uint valid_tokens(
    constant Params& params,
    constant type_5& scalars
) {
    uint _e2 = params.n_valid;
    if (_e2 >= 64u) {
        uint _e7 = params.tokens;
        return _e7;
    }
    uint _e11 = params.n_valid;
    uint _e17 = params.n_valid;
    int valid = scalars.inner[_e11 >> 2u][_e17 & 3u];
    uint _e24 = params.tokens;
    uint _e27 = params.first_token;
    return metal::min(_e24, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(valid) - as_type<uint>(static_cast<int>(_e27))), 0)));
}

float decode(
    uint word,
    uint i,
    uint dtype
) {
    if (dtype == F32_) {
        return as_type<float>(word);
    }
    uint half_ = (word >> ((i & 1u) << 4u)) & 65535u;
    if (dtype == BF16_) {
        return as_type<float>(half_ << 16u);
    }
    return float2(as_type<half2>(half_)).x;
}

uint word_of(
    uint i_1,
    uint dtype_1
) {
    return (dtype_1 == F32_) ? i_1 : (i_1 >> 1u);
}

float b_at(
    uint i_2,
    device type_6 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_2, B_DTYPE);
    uint _e5 = b[_e3];
    float _e7 = decode(_e5, i_2, B_DTYPE);
    return _e7;
}

uint position(
    View view,
    metal::uint4 at
) {
    metal::uint4 steps = view.strides * at;
    return (((view.offset + steps.x) + steps.y) + steps.z) + steps.w;
}

float c_at(
    uint i_3,
    device type_6 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_3, C_DTYPE);
    return _e7;
}

float e_at(
    uint i_4,
    device type_6 const& e,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, E_DTYPE);
    uint _e5 = e[_e3];
    float _e7 = decode(_e5, i_4, E_DTYPE);
    return _e7;
}

float f_at(
    uint i_5,
    device type_6 const& f,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, F_DTYPE);
    uint _e5 = f[_e3];
    float _e7 = decode(_e5, i_5, F_DTYPE);
    return _e7;
}

float a_at(
    uint i_6,
    device type_6 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_6, A_DTYPE);
    uint _e5 = a[_e3];
    float _e7 = decode(_e5, i_6, A_DTYPE);
    return _e7;
}

float element(
    uint which,
    metal::uint4 at_1,
    uint i_7,
    constant Params& params,
    device type_6 const& b,
    device type_6 const& c,
    device type_6 const& e,
    device type_6 const& f,
    device type_6 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    if (i_7 >= _e5) {
        return 0.0;
    }
    switch(which) {
        case 0u: {
            View _e10 = params.w;
            uint _e11 = position(_e10, at_1);
            uint _e16 = params.w.strides.w;
            float _e19 = b_at(_e11 + (i_7 * _e16), b, _buffer_sizes);
            return _e19;
        }
        case 1u: {
            View _e22 = params.k;
            uint _e23 = position(_e22, at_1);
            uint _e28 = params.k.strides.w;
            float _e31 = c_at(_e23 + (i_7 * _e28), c, _buffer_sizes);
            return _e31;
        }
        case 2u: {
            View _e34 = params.a;
            uint _e35 = position(_e34, at_1);
            uint _e40 = params.a.strides.w;
            float _e43 = e_at(_e35 + (i_7 * _e40), e, _buffer_sizes);
            return _e43;
        }
        case 3u: {
            View _e46 = params.b;
            uint _e47 = position(_e46, at_1);
            uint _e52 = params.b.strides.w;
            float _e55 = f_at(_e47 + (i_7 * _e52), f, _buffer_sizes);
            return _e55;
        }
        default: {
            View _e58 = params.r;
            uint _e59 = position(_e58, at_1);
            uint _e64 = params.r.strides.w;
            float _e67 = a_at(_e59 + (i_7 * _e64), a, _buffer_sizes);
            return _e67;
        }
    }
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

float d_at(
    uint i_8,
    device type_6 const& d,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_8, D_DTYPE);
    uint _e5 = d[_e3];
    float _e7 = decode(_e5, i_8, D_DTYPE);
    return _e7;
}

uint encode(
    float value,
    uint dtype_2
) {
    uint bits = as_type<uint>(value);
    uint magnitude = bits & 2147483647u;
    if (dtype_2 == BF16_) {
        uint rounded = ((bits + 32767u) + ((bits >> 16u) & 1u)) >> 16u;
        return (magnitude > 2139095040u) ? ((bits >> 16u) | 64u) : rounded;
    }
    uint sign = (bits >> 16u) & 32768u;
    if (magnitude >= 1199566848u) {
        return sign | ((magnitude > 2139095040u) ? 32256u : 31744u);
    }
    if (magnitude < 947912704u) {
        return sign | (as_type<uint>(as_type<float>(magnitude) + 0.5) - 1056964608u);
    }
    return sign | ((((magnitude - 939524096u) + 4095u) + ((magnitude >> 13u) & 1u)) >> 13u);
}

void put(
    uint i_9,
    float value_1,
    device type_9& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_9 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_9 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_9 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

struct wkv7_wideInput {
};
[[max_total_threads_per_threadgroup(64)]] kernel void wkv7_wide(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3& state [[user(fake0)]]
, constant type_5& scalars [[user(fake0)]]
, device type_6 const& b [[user(fake0)]]
, device type_6 const& c [[user(fake0)]]
, device type_6 const& e [[user(fake0)]]
, device type_6 const& f [[user(fake0)]]
, device type_6 const& a [[user(fake0)]]
, device type_6 const& d [[user(fake0)]]
, device type_9& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint t = 0u;
    float y = {};
    float removed = {};
    uint j = {};
    uint j_1 = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint number = (_e3 * 64u) + lane;
    uint n = params.n;
    uint _e12 = params.heads;
    if (number >= (_e12 * n)) {
        return;
    }
    uint head = number / n;
    uint i_10 = number - (head * n);
    View _e20 = params.state;
    uint _e24 = position(_e20, metal::uint4(0u, head, i_10, 0u));
    uint stride = params.state.strides.w;
    uint _e30 = valid_tokens(params, scalars);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e127 = t;
            t = _e127 + 1u;
        }
        loop_init = false;
        uint _e33 = t;
        uint _e36 = params.tokens;
        if (_e33 < _e36) {
        } else {
            break;
        }
        {
            uint _e39 = t;
            metal::uint4 at_2 = metal::uint4(0u, _e39, head, 0u);
            y = 0.0;
            uint _e44 = t;
            if (_e44 < _e30) {
                removed = 0.0;
                j = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e64 = j;
                        j = _e64 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e50 = j;
                    if (_e50 < n) {
                    } else {
                        break;
                    }
                    {
                        float _e52 = removed;
                        uint _e54 = j;
                        float _e58 = state[_e24 + (_e54 * stride)];
                        uint _e60 = j;
                        float _e61 = element(2u, at_2, _e60, params, b, c, e, f, a, _buffer_sizes);
                        removed = _e52 + (_e58 * _e61);
                    }
                }
                View _e69 = params.v;
                uint _e70 = position(_e69, at_2);
                uint _e75 = params.v.strides.w;
                float _e78 = d_at(_e70 + (i_10 * _e75), d, _buffer_sizes);
                j_1 = 0u;
                bool loop_init_2 = true;
                while(true) {
                    if (!loop_init_2) {
                        uint _e112 = j_1;
                        j_1 = _e112 + 1u;
                    }
                    loop_init_2 = false;
                    uint _e81 = j_1;
                    if (_e81 < n) {
                    } else {
                        break;
                    }
                    {
                        uint _e83 = j_1;
                        uint place = _e24 + (_e83 * stride);
                        float _e88 = state[place];
                        uint _e90 = j_1;
                        float _e91 = element(0u, at_2, _e90, params, b, c, e, f, a, _buffer_sizes);
                        float _e93 = removed;
                        uint _e95 = j_1;
                        float _e96 = element(3u, at_2, _e95, params, b, c, e, f, a, _buffer_sizes);
                        uint _e100 = j_1;
                        float _e101 = element(1u, at_2, _e100, params, b, c, e, f, a, _buffer_sizes);
                        float s = ((_e88 * _e91) + (_e93 * _e96)) + (_e78 * _e101);
                        state[place] = s;
                        float _e106 = y;
                        uint _e108 = j_1;
                        float _e109 = element(4u, at_2, _e108, params, b, c, e, f, a, _buffer_sizes);
                        y = _e106 + (s * _e109);
                    }
                }
            }
            View _e117 = params.out;
            uint _e118 = position(_e117, at_2);
            uint _e123 = params.out.strides.w;
            float _e126 = y;
            put(_e118 + (i_10 * _e123), _e126, out, _buffer_sizes);
        }
    }
    return;
}
