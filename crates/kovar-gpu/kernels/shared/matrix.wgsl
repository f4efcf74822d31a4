// A tile of a product in cooperative matrices: eight subgroups of 32 compute 8 x 8 matrices of sums
// from slices of both factors in workgroup memory, each subgroup 4 x 2 of them. With the feature
// `half` matrices are 16 x 16 of f16 with sums in f32, else 8 x 8 of f32. Without the feature
// `matrices` the invocations emulate the device's matrices.

import package::shared::share::{Share, share_of};

@if(half) const MATRIX: u32 = 16u;
@if(!half) const MATRIX: u32 = 8u;
// Rows of each factor that a tile has.
@if(half) const MATRIX_SPAN: u32 = 128u;
@if(!half) const MATRIX_SPAN: u32 = 64u;

const MATRIX_INVOCATIONS = 256u;

// Elements along K that a slice has, a multiple of `MATRIX`.
override MATRIX_DEPTH: u32 = 32u;
// The distance of rows of a slice in elements. It exceeds the depth a little, so that rows use
// different banks.
override MATRIX_STRIDE: u32 = 40u;
// The size of a factor's slice: in vectors of four elements with `half`, else in elements.
override MATRIX_PLACES: u32 = 1280u;

// Both factors, and a matrix of sums for each subgroup. Devices load and store matrices at
// multiples of 16 bytes and round other addresses down. The vectors of four f32 align the struct,
// and the size of each of its arrays is a multiple of 16 bytes.
@if(matrices && half)
struct MatrixMemory {
    sums: array<vec4<f32>, 512>,
    a: array<vec4<f16>, 1280>,
    b: array<vec4<f16>, 1280>,
}
@if(matrices && half)
var<workgroup> matrix_memory: MatrixMemory;
@if(!matrices && half)
var<workgroup> matrix_a: array<vec2<u32>, MATRIX_PLACES>;
@if(!matrices && half)
var<workgroup> matrix_b: array<vec2<u32>, MATRIX_PLACES>;
@if(!half)
var<workgroup> matrix_a: array<f32, MATRIX_PLACES>;
@if(!half)
var<workgroup> matrix_b: array<f32, MATRIX_PLACES>;
@if(!matrices && half)
var<workgroup> matrix_sums: array<f32, 2048>;
@if(!half) var<workgroup> matrix_sums: array<f32, 512>;

@if(matrices && half) alias MatrixA = coop_mat16x16<f16, A>;
@if(matrices && half) alias MatrixB = coop_mat16x16<f16, B>;
@if(matrices && half) alias MatrixC = coop_mat16x16<f32, C>;
@if(matrices && !half) alias MatrixA = coop_mat8x8<f32, A>;
@if(matrices && !half) alias MatrixB = coop_mat8x8<f32, B>;
@if(matrices && !half) alias MatrixC = coop_mat8x8<f32, C>;

// The first `MATRIX` invocations of a subgroup have a row each.
@if(!matrices)
struct MatrixA {
    row: array<f32, MATRIX>,
}
// The matrix stays in workgroup memory.
@if(!matrices)
struct MatrixB {
    row: u32,
    k: u32,
}
@if(!matrices)
struct MatrixC {
    row: array<f32, MATRIX>,
}

// The invocation's number in its subgroup, and the subgroup.
var<private> matrix_lane: u32;
var<private> matrix_subgroup: u32;
// `MATRIX`, hidden from compilers so that they do not unroll loops over a matrix.
@if(!matrices) var<private> matrix_size: u32;

// The sums: four rows of matrices by two columns.
var<private> c00: MatrixC;
var<private> c01: MatrixC;
var<private> c10: MatrixC;
var<private> c11: MatrixC;
var<private> c20: MatrixC;
var<private> c21: MatrixC;
var<private> c30: MatrixC;
var<private> c31: MatrixC;

// `zero` is 0 at run time.
fn matrix_begin(lane: u32, subgroup: u32, zero: u32) {
    matrix_lane = lane & 31u;
    matrix_subgroup = subgroup;
    @if(!matrices)
    matrix_size = MATRIX + zero;
    c00 = MatrixC();
    c01 = MatrixC();
    c10 = MatrixC();
    c11 = MatrixC();
    c20 = MatrixC();
    c21 = MatrixC();
    c30 = MatrixC();
    c31 = MatrixC();
}

// Share `i` of a slice.
fn matrix_share(i: u32, a_k_major: bool, b_k_major: bool) -> Share {
    return share_of(i, MATRIX_SPAN / 4u, MATRIX_DEPTH / 4u, a_k_major, b_k_major);
}

// Writes a share to workgroup memory. A column of the block has the elements of one `k`.
fn matrix_stage(share: Share, block: mat4x4<f32>) {
    if share.any {
        let rows = transpose(block);
        stage_row(share.is_b, share.row, share.k, rows[0]);
        stage_row(share.is_b, share.row + 1u, share.k, rows[1]);
        stage_row(share.is_b, share.row + 2u, share.k, rows[2]);
        stage_row(share.is_b, share.row + 3u, share.k, rows[3]);
    }
}

@if(matrices && half)
fn stage_row(is_b: bool, row: u32, k: u32, four: vec4<f32>) {
    let place = (row * MATRIX_STRIDE + k) / 4u;
    if is_b {
        matrix_memory.b[place] = vec4<f16>(four);
    } else {
        matrix_memory.a[place] = vec4<f16>(four);
    }
}
@if(!matrices && half)
fn stage_row(is_b: bool, row: u32, k: u32, four: vec4<f32>) {
    let place = (row * MATRIX_STRIDE + k) / 4u;
    let packed = vec2<u32>(pack2x16float(four.xy), pack2x16float(four.zw));
    if is_b {
        matrix_b[place] = packed;
    } else {
        matrix_a[place] = packed;
    }
}
@if(!half)
fn stage_row(is_b: bool, row: u32, k: u32, four: vec4<f32>) {
    let place = row * MATRIX_STRIDE + k;
    if is_b {
        matrix_b[place] = four.x;
        matrix_b[place + 1u] = four.y;
        matrix_b[place + 2u] = four.z;
        matrix_b[place + 3u] = four.w;
    } else {
        matrix_a[place] = four.x;
        matrix_a[place + 1u] = four.y;
        matrix_a[place + 2u] = four.z;
        matrix_a[place + 3u] = four.w;
    }
}

@if(matrices && half)
fn load_a(row: u32, k: u32) -> MatrixA {
    let place = (row * MATRIX_STRIDE + k) / 4u;
    let stride = MATRIX_STRIDE / 4u;
    return coopLoadT<coop_mat16x16<f16, A>>(&matrix_memory.a[place], stride);
}
@if(matrices && half)
fn load_b(row: u32, k: u32) -> MatrixB {
    let place = (row * MATRIX_STRIDE + k) / 4u;
    let stride = MATRIX_STRIDE / 4u;
    return coopLoad<coop_mat16x16<f16, B>>(&matrix_memory.b[place], stride);
}
@if(matrices && !half)
fn load_a(row: u32, k: u32) -> MatrixA {
    let place = row * MATRIX_STRIDE + k;
    let stride = MATRIX_STRIDE;
    return coopLoadT<coop_mat8x8<f32, A>>(&matrix_a[place], stride);
}
@if(matrices && !half)
fn load_b(row: u32, k: u32) -> MatrixB {
    let place = row * MATRIX_STRIDE + k;
    let stride = MATRIX_STRIDE;
    return coopLoad<coop_mat8x8<f32, B>>(&matrix_b[place], stride);
}
@if(matrices)
fn multiply_add(a: MatrixA, b: MatrixB, c: MatrixC) -> MatrixC {
    return coopMultiplyAdd(a, b, c);
}
@if(matrices && half)
fn store_sums(c: MatrixC) {
    let place = matrix_subgroup * MATRIX * MATRIX / 4u;
    let stride = MATRIX / 4u;
    coopStoreT(c, &matrix_memory.sums[place], stride);
}
@if(matrices && !half)
fn store_sums(c: MatrixC) {
    let place = matrix_subgroup * MATRIX * MATRIX;
    let stride = MATRIX;
    coopStoreT(c, &matrix_sums[place], stride);
}

@if(!matrices && half)
fn a_staged(row: u32, k: u32) -> f32 {
    let i = row * MATRIX_STRIDE + k;
    let word = matrix_a[i / 4u][(i / 2u) & 1u];
    return unpack2x16float(word)[i & 1u];
}
@if(!matrices && half)
fn b_staged(row: u32, k: u32) -> f32 {
    let i = row * MATRIX_STRIDE + k;
    let word = matrix_b[i / 4u][(i / 2u) & 1u];
    return unpack2x16float(word)[i & 1u];
}
@if(!matrices && !half)
fn a_staged(row: u32, k: u32) -> f32 {
    return matrix_a[row * MATRIX_STRIDE + k];
}
@if(!matrices && !half)
fn b_staged(row: u32, k: u32) -> f32 {
    return matrix_b[row * MATRIX_STRIDE + k];
}
@if(!matrices)
fn load_a(row: u32, k: u32) -> MatrixA {
    var a: MatrixA;
    for (var i = 0u; i < matrix_size; i++) {
        a.row[i] = a_staged(row + (matrix_lane & (MATRIX - 1u)), k + i);
    }
    return a;
}
@if(!matrices)
fn load_b(row: u32, k: u32) -> MatrixB {
    return MatrixB(row, k);
}
@if(!matrices)
fn multiply_add(a: MatrixA, b: MatrixB, c: MatrixC) -> MatrixC {
    var row = a.row;
    var sums = c;
    if matrix_lane < MATRIX {
        for (var column = 0u; column < matrix_size; column++) {
            var sum = sums.row[column];
            for (var i = 0u; i < matrix_size; i++) {
                sum = fma(row[i], b_staged(b.row + column, b.k + i), sum);
            }
            sums.row[column] = sum;
        }
    }
    return sums;
}
@if(!matrices)
fn store_sums(c: MatrixC) {
    var row = c.row;
    if matrix_lane < MATRIX {
        let place = (matrix_subgroup * MATRIX + matrix_lane) * MATRIX;
        for (var column = 0u; column < matrix_size; column++) {
            matrix_sums[place + column] = row[column];
        }
    }
}

// The first row and column of the subgroup's matrices in the tile.
fn matrix_row() -> u32 {
    return matrix_subgroup / 4u * 4u * MATRIX;
}
fn matrix_column() -> u32 {
    return matrix_subgroup % 4u * 2u * MATRIX;
}

fn hot_matrices(row: u32, column: u32, k: u32) {
    let b0 = load_b(column, k);
    let b1 = load_b(column + MATRIX, k);
    let a0 = load_a(row, k);
    let a1 = load_a(row + MATRIX, k);
    let a2 = load_a(row + 2u * MATRIX, k);
    let a3 = load_a(row + 3u * MATRIX, k);
    c00 = multiply_add(a0, b0, c00);
    c01 = multiply_add(a0, b1, c01);
    c10 = multiply_add(a1, b0, c10);
    c11 = multiply_add(a1, b1, c11);
    c20 = multiply_add(a2, b0, c20);
    c21 = multiply_add(a2, b1, c21);
    c30 = multiply_add(a3, b0, c30);
    c31 = multiply_add(a3, b1, c31);
}

// Adds the products of a slice.
fn matrix_multiply() {
    for (var k = 0u; k < MATRIX_DEPTH; k += MATRIX) {
        hot_matrices(matrix_row(), matrix_column(), k);
    }
}

// The number of a subgroup's matrices.
const MATRIX_COUNT = 8u;

// Writes matrix `i` of each subgroup to workgroup memory. All invocations call it.
fn matrix_store(i: u32) {
    workgroupBarrier();
    switch i {
        case 0u: { store_sums(c00); }
        case 1u: { store_sums(c01); }
        case 2u: { store_sums(c10); }
        case 3u: { store_sums(c11); }
        case 4u: { store_sums(c20); }
        case 5u: { store_sums(c21); }
        case 6u: { store_sums(c30); }
        default: { store_sums(c31); }
    }
    workgroupBarrier();
}

// The row and the column of matrix `i` in the tile.
fn matrix_row_of(i: u32) -> u32 {
    return matrix_row() + i / 2u * MATRIX;
}
fn matrix_column_of(i: u32) -> u32 {
    return matrix_column() + i % 2u * MATRIX;
}

// A sum of the matrix that `matrix_store` wrote.
fn matrix_sum(row: u32, column: u32) -> f32 {
    let place = (matrix_subgroup * MATRIX + row) * MATRIX + column;
    @if(matrices && half)
    return matrix_memory.sums[place / 4u][place % 4u];
    @if(!(matrices && half))
    return matrix_sums[place];
}
