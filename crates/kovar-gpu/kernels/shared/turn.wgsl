// Pairs of a head's elements times 2 x 2 matrices: rotary position embedding.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::out::{put, put_pair};
import package::shared::view::{View, position, unravel};

struct Turns {
    // The sizes before the tokens, tokens, heads, and what invocations do of a head: pairs, then
    // elements that are copied.
    dims: vec4<u32>,
    out: View,
    a: View,
    // The table.
    b: View,
    // The row of the table of the first token.
    first_token: u32,
    // The pairs of a head.
    pairs: u32,
}

@group(0) @binding(0) var<uniform> turns: Turns;

// Whether the table has whole matrices, row by row, or cosines and sines.
override MATRICES: u32 = 0u;
// Whether a pair are neighbours, or half of what turns apart.
override NEIGHBOURS: u32 = 0u;
// Elements that an invocation writes at once.
override PER: u32 = 1u;

// Both results of a pair of elements.
fn turned(token: u32, pair: u32, x: vec2<f32>) -> vec2<f32> {
    if MATRICES == 0u {
        let c = b_at(position(turns.b, vec4<u32>(0u, token, pair, 0u)));
        let s = b_at(position(turns.b, vec4<u32>(0u, token, pair, 1u)));
        return vec2<f32>(x.x * c - x.y * s, x.x * s + x.y * c);
    }
    let first = position(turns.b, vec4<u32>(token, pair, 0u, 0u));
    let second = first + turns.b.strides.z;
    let next = turns.b.strides.w;
    return vec2<f32>(
        x.x * b_at(first) + x.y * b_at(first + next),
        x.x * b_at(second) + x.y * b_at(second + next),
    );
}

fn turn(invocation: u32) {
    let dims = turns.dims;
    if invocation >= dims.x * dims.y * dims.z * dims.w {
        return;
    }
    let at = unravel(invocation, dims);
    let head = vec4<u32>(at.xyz, 0u);
    let start = position(turns.a, head);
    let step = turns.a.strides.w;
    let to = position(turns.out, head);
    let stride = turns.out.strides.w;
    let token = turns.first_token + at.y;
    // A pair of neighbours fills what is written at once; others go two by two.
    let per = select(PER, 1u, NEIGHBOURS == 1u);
    let turning = turns.pairs / per;
    if at.w >= turning {
        let i = 2u * turns.pairs + (at.w - turning) * PER;
        if PER == 1u {
            put(to + i * stride, a_at(start + i * step));
        } else {
            put_pair(to + i, a_at(start + i * step), a_at(start + (i + 1u) * step));
        }
        return;
    }
    let pair = at.w * per;
    let i = select(pair, 2u * pair, NEIGHBOURS == 1u);
    let j = select(pair + turns.pairs, i + 1u, NEIGHBOURS == 1u);
    let x = vec2<f32>(a_at(start + i * step), a_at(start + j * step));
    let y = turned(token, pair, x);
    if PER == 1u {
        put(to + i * stride, y.x);
        put(to + j * stride, y.y);
    } else if NEIGHBOURS == 1u {
        put_pair(to + i, y.x, y.y);
    } else {
        let next = vec2<f32>(a_at(start + (i + 1u) * step), a_at(start + (j + 1u) * step));
        let z = turned(token, pair + 1u, next);
        put_pair(to + i, y.x, z.x);
        put_pair(to + j, y.y, z.y);
    }
}
