// language: metal3.1
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size5;
    uint size6;
    uint size7;
    uint size8;
    uint size9;
    uint size10;
    uint size11;
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
struct type_7 {
    metal::float4 inner[640];
};
struct type_8 {
    metal::float4 inner[128];
};
typedef uint type_9[1];
typedef metal::atomic_uint type_12[1];
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
    device type_9 const& b,
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
    device type_9 const& c,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_3, C_DTYPE);
    uint _e5 = c[_e3];
    float _e7 = decode(_e5, i_3, C_DTYPE);
    return _e7;
}

float e_at(
    uint i_4,
    device type_9 const& e,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_4, E_DTYPE);
    uint _e5 = e[_e3];
    float _e7 = decode(_e5, i_4, E_DTYPE);
    return _e7;
}

float f_at(
    uint i_5,
    device type_9 const& f,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_5, F_DTYPE);
    uint _e5 = f[_e3];
    float _e7 = decode(_e5, i_5, F_DTYPE);
    return _e7;
}

float a_at(
    uint i_6,
    device type_9 const& a,
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
    device type_9 const& b,
    device type_9 const& c,
    device type_9 const& e,
    device type_9 const& f,
    device type_9 const& a,
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

void stage(
    uint token,
    uint head,
    uint lane_1,
    constant Params& params,
    threadgroup type_7& vectors,
    device type_9 const& b,
    device type_9 const& c,
    device type_9 const& e,
    device type_9 const& f,
    device type_9 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_8 = {};
    uint _e6 = params.log2_lanes;
    uint quads = 4u << _e6;
    metal::uint4 at_2 = metal::uint4(0u, token, head, 0u);
    i_8 = lane_1;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e47 = i_8;
            i_8 = _e47 + 64u;
        }
        loop_init = false;
        uint _e12 = i_8;
        if (_e12 < (5u * quads)) {
        } else {
            break;
        }
        {
            uint _e16 = i_8;
            uint which_1 = _e16 / quads;
            uint _e19 = i_8;
            uint first = 4u * (_e19 - (which_1 * quads));
            uint _e31 = i_8;
            float _e36 = element(which_1, at_2, first, params, b, c, e, f, a, _buffer_sizes);
            float _e39 = element(which_1, at_2, first + 1u, params, b, c, e, f, a, _buffer_sizes);
            float _e42 = element(which_1, at_2, first + 2u, params, b, c, e, f, a, _buffer_sizes);
            float _e45 = element(which_1, at_2, first + 3u, params, b, c, e, f, a, _buffer_sizes);
            vectors.inner[((((token & 1u) * 320u) + (which_1 * 64u)) + _e31) - (which_1 * quads)] = metal::float4(_e36, _e39, _e42, _e45);
        }
    }
    return;
}

metal::float4 load_state(
    uint row,
    uint column,
    constant Params& params,
    device type_3 const& state,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 quad_ = metal::float4(0.0);
    uint stride = params.state.strides.w;
    uint n = params.n;
    if (column < n) {
        float _e19 = state[row + (column * stride)];
        quad_.x = _e19;
    }
    if ((column + 1u) < n) {
        float _e30 = state[row + ((column + 1u) * stride)];
        quad_.y = _e30;
    }
    if ((column + 2u) < n) {
        float _e41 = state[row + ((column + 2u) * stride)];
        quad_.z = _e41;
    }
    if ((column + 3u) < n) {
        float _e52 = state[row + ((column + 3u) * stride)];
        quad_.w = _e52;
    }
    metal::float4 _e53 = quad_;
    return _e53;
}

void store_state(
    uint row_1,
    uint column_1,
    metal::float4 quad_1,
    constant Params& params,
    device type_3& state,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint stride_1 = params.state.strides.w;
    uint n_1 = params.n;
    if (column_1 < n_1) {
        state[row_1 + (column_1 * stride_1)] = quad_1.x;
    }
    if ((column_1 + 1u) < n_1) {
        state[row_1 + ((column_1 + 1u) * stride_1)] = quad_1.y;
    }
    if ((column_1 + 2u) < n_1) {
        state[row_1 + ((column_1 + 2u) * stride_1)] = quad_1.z;
    }
    if ((column_1 + 3u) < n_1) {
        state[row_1 + ((column_1 + 3u) * stride_1)] = quad_1.w;
        return;
    } else {
        return;
    }
}

uint flat_workgroup(
    metal::uint3 id,
    metal::uint3 count
) {
    return (id.y * count.x) + id.x;
}

float d_at(
    uint i_9,
    device type_9 const& d,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = word_of(i_9, D_DTYPE);
    uint _e5 = d[_e3];
    float _e7 = decode(_e5, i_9, D_DTYPE);
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
    uint i_10,
    float value_1,
    device type_12& out,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = (i_10 & 1u) << 4u;
    uint _e13 = metal::atomic_fetch_and_explicit(&out[i_10 >> 1u], ~((65535u << shift)), metal::memory_order_relaxed);
    uint _e19 = encode(value_1, OUT_DTYPE);
    uint _e21 = metal::atomic_fetch_or_explicit(&out[i_10 >> 1u], _e19 << shift, metal::memory_order_relaxed);
    return;
}

struct wkv7_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void wkv7_(
  metal::uint3 workgroup [[threadgroup_position_in_grid]]
, metal::uint3 workgroups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, constant Params& params [[user(fake0)]]
, device type_3& state [[user(fake0)]]
, constant type_5& scalars [[user(fake0)]]
, threadgroup type_7& vectors
, threadgroup type_8& sums
, device type_9 const& b [[user(fake0)]]
, device type_9 const& c [[user(fake0)]]
, device type_9 const& e [[user(fake0)]]
, device type_9 const& f [[user(fake0)]]
, device type_9 const& a [[user(fake0)]]
, device type_9 const& d [[user(fake0)]]
, device type_12& out [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    bool local = {};
    metal::float4 s0_ = metal::float4(0.0);
    metal::float4 s1_ = metal::float4(0.0);
    metal::float4 s2_ = metal::float4(0.0);
    metal::float4 s3_ = metal::float4(0.0);
    uint t = 0u;
    float v = {};
    metal::float4 all = {};
    uint j = {};
    bool local_1 = {};
    uint t_1 = {};
    uint _e3 = flat_workgroup(workgroup, workgroups);
    uint _e6 = params.heads;
    uint _e9 = params.head_workgroups;
    bool inside = _e3 < (_e6 * _e9);
    uint known = inside ? _e3 : 0u;
    uint _e16 = params.head_workgroups;
    uint head_1 = known / _e16;
    uint log2_lanes = params.log2_lanes;
    uint lanes = 1u << log2_lanes;
    uint own = lane & (lanes - 1u);
    uint _e28 = params.head_workgroups;
    uint i_11 = (((known - (head_1 * _e28)) << 6u) + lane) >> log2_lanes;
    if (inside) {
        uint _e39 = params.n;
        local = i_11 < _e39;
    } else {
        local = false;
    }
    bool has_row = local;
    uint _e43 = valid_tokens(params, scalars);
    metal::uint4 quad_2 = metal::uint4(own, own + lanes, own + (2u * lanes), own + (3u * lanes));
    View _e54 = params.state;
    uint _e58 = position(_e54, metal::uint4(0u, head_1, i_11, 0u));
    if (has_row) {
        metal::float4 _e74 = load_state(_e58, 4u * quad_2.x, params, state, _buffer_sizes);
        s0_ = _e74;
        metal::float4 _e78 = load_state(_e58, 4u * quad_2.y, params, state, _buffer_sizes);
        s1_ = _e78;
        metal::float4 _e82 = load_state(_e58, 4u * quad_2.z, params, state, _buffer_sizes);
        s2_ = _e82;
        metal::float4 _e86 = load_state(_e58, 4u * quad_2.w, params, state, _buffer_sizes);
        s3_ = _e86;
    }
    if (_e43 > 0u) {
        stage(0u, head_1, lane, params, vectors, b, c, e, f, a, _buffer_sizes);
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e344 = t;
            t = _e344 + 1u;
        }
        loop_init_1 = false;
        uint _e92 = t;
        if (_e92 < _e43) {
        } else {
            break;
        }
        {
            uint _e94 = t;
            if ((_e94 + 1u) < _e43) {
                uint _e98 = t;
                stage(_e98 + 1u, head_1, lane, params, vectors, b, c, e, f, a, _buffer_sizes);
            }
            uint _e102 = t;
            metal::uint4 at_3 = metal::uint4(0u, _e102, head_1, 0u);
            v = 0.0;
            if (has_row) {
                View _e109 = params.v;
                uint _e110 = position(_e109, at_3);
                uint _e115 = params.v.strides.w;
                float _e118 = d_at(_e110 + (i_11 * _e115), d, _buffer_sizes);
                v = _e118;
            }
            uint _e119 = t;
            metal::uint4 w = quad_2 + metal::uint4((_e119 & 1u) * 320u);
            metal::uint4 k = w + metal::uint4(64u);
            metal::uint4 a_1 = w + metal::uint4(128u);
            metal::uint4 b_1 = w + metal::uint4(192u);
            metal::uint4 r = w + metal::uint4(256u);
            metal::float4 _e138 = s0_;
            metal::float4 _e142 = vectors.inner[a_1.x];
            metal::float4 _e144 = s1_;
            metal::float4 _e148 = vectors.inner[a_1.y];
            metal::float4 _e151 = s2_;
            metal::float4 _e155 = vectors.inner[a_1.z];
            metal::float4 _e158 = s3_;
            metal::float4 _e162 = vectors.inner[a_1.w];
            float removed = ((metal::dot(_e138, _e142) + metal::dot(_e144, _e148)) + metal::dot(_e151, _e155)) + metal::dot(_e158, _e162);
            metal::float4 _e165 = s0_;
            metal::float4 _e169 = vectors.inner[w.x];
            s0_ = _e165 * _e169;
            metal::float4 _e171 = s1_;
            metal::float4 _e175 = vectors.inner[w.y];
            s1_ = _e171 * _e175;
            metal::float4 _e177 = s2_;
            metal::float4 _e181 = vectors.inner[w.z];
            s2_ = _e177 * _e181;
            metal::float4 _e183 = s3_;
            metal::float4 _e187 = vectors.inner[w.w];
            s3_ = _e183 * _e187;
            metal::float4 b0_ = vectors.inner[b_1.x];
            metal::float4 b1_ = vectors.inner[b_1.y];
            metal::float4 b2_ = vectors.inner[b_1.z];
            metal::float4 b3_ = vectors.inner[b_1.w];
            metal::float4 _e205 = s0_;
            float _e206 = v;
            metal::float4 _e210 = vectors.inner[k.x];
            s0_ = _e205 + (_e206 * _e210);
            metal::float4 _e213 = s1_;
            float _e214 = v;
            metal::float4 _e218 = vectors.inner[k.y];
            s1_ = _e213 + (_e214 * _e218);
            metal::float4 _e221 = s2_;
            float _e222 = v;
            metal::float4 _e226 = vectors.inner[k.z];
            s2_ = _e221 + (_e222 * _e226);
            metal::float4 _e229 = s3_;
            float _e230 = v;
            metal::float4 _e234 = vectors.inner[k.w];
            s3_ = _e229 + (_e230 * _e234);
            metal::float4 r0_ = vectors.inner[r.x];
            metal::float4 r1_ = vectors.inner[r.y];
            metal::float4 r2_ = vectors.inner[r.z];
            metal::float4 r3_ = vectors.inner[r.w];
            metal::float4 _e253 = s0_;
            metal::float4 _e255 = s1_;
            metal::float4 _e258 = s2_;
            metal::float4 _e261 = s3_;
            float kept = ((metal::dot(_e253, r0_) + metal::dot(_e255, r1_)) + metal::dot(_e258, r2_)) + metal::dot(_e261, r3_);
            float added = ((metal::dot(b0_, r0_) + metal::dot(b1_, r1_)) + metal::dot(b2_, r2_)) + metal::dot(b3_, r3_);
            uint _e271 = t;
            uint slot = ((_e271 & 1u) * 64u) + lane;
            sums.inner[slot] = metal::float4(removed, kept, added, 0.0);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            all = metal::float4(0.0);
            j = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e296 = j;
                    j = _e296 + 1u;
                }
                loop_init_2 = false;
                uint _e286 = j;
                if (_e286 < lanes) {
                } else {
                    break;
                }
                {
                    metal::float4 _e288 = all;
                    uint _e291 = j;
                    metal::float4 _e294 = sums.inner[(slot - own) + _e291];
                    all = _e288 + _e294;
                }
            }
            metal::float4 _e299 = s0_;
            float _e301 = all.x;
            s0_ = _e299 + (_e301 * b0_);
            metal::float4 _e304 = s1_;
            float _e306 = all.x;
            s1_ = _e304 + (_e306 * b1_);
            metal::float4 _e309 = s2_;
            float _e311 = all.x;
            s2_ = _e309 + (_e311 * b2_);
            metal::float4 _e314 = s3_;
            float _e316 = all.x;
            s3_ = _e314 + (_e316 * b3_);
            if (has_row) {
                local_1 = own == 0u;
            } else {
                local_1 = false;
            }
            bool _e324 = local_1;
            if (_e324) {
                View _e327 = params.out;
                uint _e328 = position(_e327, at_3);
                uint _e333 = params.out.strides.w;
                float _e337 = all.y;
                float _e339 = all.x;
                float _e341 = all.z;
                put(_e328 + (i_11 * _e333), _e337 + (_e339 * _e341), out, _buffer_sizes);
            }
        }
    }
    if (!(has_row)) {
        return;
    }
    if (_e43 > 0u) {
        metal::float4 _e353 = s0_;
        store_state(_e58, 4u * quad_2.x, _e353, params, state, _buffer_sizes);
        metal::float4 _e357 = s1_;
        store_state(_e58, 4u * quad_2.y, _e357, params, state, _buffer_sizes);
        metal::float4 _e361 = s2_;
        store_state(_e58, 4u * quad_2.z, _e361, params, state, _buffer_sizes);
        metal::float4 _e365 = s3_;
        store_state(_e58, 4u * quad_2.w, _e365, params, state, _buffer_sizes);
    }
    if (own == 0u) {
        t_1 = _e43;
        bool loop_init_3 = true;
        while(true) {
            if (!loop_init_3) {
                uint _e390 = t_1;
                t_1 = _e390 + 1u;
            }
            loop_init_3 = false;
            uint _e369 = t_1;
            uint _e372 = params.tokens;
            if (_e369 < _e372) {
            } else {
                break;
            }
            {
                uint _e375 = t_1;
                metal::uint4 at_4 = metal::uint4(0u, _e375, head_1, 0u);
                View _e380 = params.out;
                uint _e381 = position(_e380, at_4);
                uint _e386 = params.out.strides.w;
                put(_e381 + (i_11 * _e386), 0.0, out, _buffer_sizes);
            }
        }
        return;
    } else {
        return;
    }
}
