// A product of matrices for each batch: out[i, j] = alpha sum_k a[i, k] b[j, k] + beta c[i, j]. The
// rows of the factors `a` and `b` are the rows and the columns of the result.

import package::shared::c::c_at;
import package::shared::out::put;
import package::shared::view::{View, position, unravel};

struct Params {
    batch: vec4<u32>,
    // Their strides are those of the batches.
    a: View,
    b: View,
    c: View,
    out: View,
    // Rows of `a`, rows of `b`, and K.
    size: vec4<u32>,
    // Strides of rows and along K: of `a`, then of `b`.
    steps: vec4<u32>,
    // Strides of rows and of columns: of `c`, then of `out`.
    places: vec4<u32>,
    // alpha, beta
    factors: vec4<f32>,
}

@group(0) @binding(0) var<uniform> params: Params;

// Whether `c` is added.
override ADDEND: u32 = 0u;

// Where the matrices of a batch begin.
struct Bases {
    a: u32,
    b: u32,
    c: u32,
    out: u32,
}

fn bases_of(batch: u32) -> Bases {
    let at = unravel(batch, params.batch);
    return Bases(
        position(params.a, at),
        position(params.b, at),
        position(params.c, at),
        position(params.out, at),
    );
}

// Writes the result at a row and a column, given its sum, unless it lies outside.
fn finish(bases: Bases, row: u32, column: u32, sum: f32) {
    if row >= params.size.x || column >= params.size.y {
        return;
    }
    var y = params.factors.x * sum;
    if ADDEND == 1u {
        let place = bases.c + row * params.places.x + column * params.places.y;
        y = fma(params.factors.y, c_at(place), y);
    }
    put(bases.out + row * params.places.z + column * params.places.w, y);
}

// The results of a row at a column and the next three.
fn finish_four(bases: Bases, row: u32, column: u32, sums: vec4<f32>) {
    finish(bases, row, column, sums.x);
    finish(bases, row, column + 1u, sums.y);
    finish(bases, row, column + 2u, sums.z);
    finish(bases, row, column + 3u, sums.w);
}
