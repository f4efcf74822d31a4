// A tile of a product in cooperative matrices: eight subgroups of 32 compute 8 x 8 matrices of sums
// from slices of both factors in workgroup memory, each subgroup 4 x 2 of them. With the feature
// `half` matrices are 16 x 16 of f16 with sums in f32, else 8 x 8 of f32. Without the feature
// `matrices` the invocations do what the device's matrices would.

@if(half) const MATRIX: u32 = 16u;
@if(!half) const MATRIX: u32 = 8u;
// Lines of a tile.
@if(half) const MATRIX_SPAN: u32 = 128u;
@if(!half) const MATRIX_SPAN: u32 = 64u;

const MATRIX_INVOCATIONS = 256u;

// Terms of a slice, a multiple of `MATRIX`.
override MATRIX_DEPTH: u32 = 32u;
// Elements of a factor from a line to the next; a few more than terms, so that lines meet different
// banks.
override MATRIX_STRIDE: u32 = 40u;
// Elements of a factor's slice over 4 with `half`, else elements.
override MATRIX_PLACES: u32 = 1280u;

// Both factors and, of each subgroup, a matrix of sums. Devices load and store matrices at multiples of
// 16 bytes, and round what lies between down: a vector of four f32 aligns the whole, and each part of it is
// a multiple of 16 bytes.
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

// An invocation of the first of a subgroup has a row.
@if(!matrices)
struct MatrixA {
    row: array<f32, MATRIX>,
}
// The matrix stays where it is.
@if(!matrices)
struct MatrixB {
    line: u32,
    k: u32,
}
@if(!matrices)
struct MatrixC {
    row: array<f32, MATRIX>,
}

// The invocation and the subgroup, as the subgroup's matrices count them.
var<private> matrix_lane: u32;
var<private> matrix_subgroup: u32;
// `MATRIX`, which compilers don't see, so that they leave loops over a matrix rolled.
@if(!matrices) var<private> matrix_size: u32;

// The sums: four rows of matrices, two columns.
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

// The 4 x 4 elements that an invocation brings to workgroup memory, counted from the slice's begin.
struct MatrixShare {
    any: bool,
    is_b: bool,
    line: u32,
    k: u32,
}

// Share `i` of a slice; `along_k` tells for each factor whether neighbours along k are neighbours in
// memory.
fn matrix_share(i: u32, a_along_k: bool, b_along_k: bool) -> MatrixShare {
    let quads = MATRIX_DEPTH / 4u;
    let groups = MATRIX_SPAN / 4u;
    let blocks = quads * groups;
    let is_b = i >= blocks;
    let block = select(i, i - blocks, is_b);
    if select(a_along_k, b_along_k, is_b) {
        return MatrixShare(i < 2u * blocks, is_b, block / quads * 4u, block % quads * 4u);
    }
    return MatrixShare(i < 2u * blocks, is_b, block % groups * 4u, block / groups * 4u);
}

// Writes a share, of which a column has the elements of one term.
fn matrix_stage(share: MatrixShare, block: mat4x4<f32>) {
    if share.any {
        let lines = transpose(block);
        stage_line(share.is_b, share.line, share.k, lines[0]);
        stage_line(share.is_b, share.line + 1u, share.k, lines[1]);
        stage_line(share.is_b, share.line + 2u, share.k, lines[2]);
        stage_line(share.is_b, share.line + 3u, share.k, lines[3]);
    }
}

@if(matrices && half)
fn stage_line(is_b: bool, line: u32, k: u32, terms: vec4<f32>) {
    let place = (line * MATRIX_STRIDE + k) / 4u;
    if is_b {
        matrix_memory.b[place] = vec4<f16>(terms);
    } else {
        matrix_memory.a[place] = vec4<f16>(terms);
    }
}
@if(!matrices && half)
fn stage_line(is_b: bool, line: u32, k: u32, terms: vec4<f32>) {
    let place = (line * MATRIX_STRIDE + k) / 4u;
    let packed = vec2<u32>(pack2x16float(terms.xy), pack2x16float(terms.zw));
    if is_b {
        matrix_b[place] = packed;
    } else {
        matrix_a[place] = packed;
    }
}
@if(!half)
fn stage_line(is_b: bool, line: u32, k: u32, terms: vec4<f32>) {
    let place = line * MATRIX_STRIDE + k;
    if is_b {
        matrix_b[place] = terms.x;
        matrix_b[place + 1u] = terms.y;
        matrix_b[place + 2u] = terms.z;
        matrix_b[place + 3u] = terms.w;
    } else {
        matrix_a[place] = terms.x;
        matrix_a[place + 1u] = terms.y;
        matrix_a[place + 2u] = terms.z;
        matrix_a[place + 3u] = terms.w;
    }
}

@if(matrices && half)
fn load_a(line: u32, k: u32) -> MatrixA {
    let place = (line * MATRIX_STRIDE + k) / 4u;
    let stride = MATRIX_STRIDE / 4u;
    return coopLoadT<coop_mat16x16<f16, A>>(&matrix_memory.a[place], stride);
}
@if(matrices && half)
fn load_b(line: u32, k: u32) -> MatrixB {
    let place = (line * MATRIX_STRIDE + k) / 4u;
    let stride = MATRIX_STRIDE / 4u;
    return coopLoad<coop_mat16x16<f16, B>>(&matrix_memory.b[place], stride);
}
@if(matrices && !half)
fn load_a(line: u32, k: u32) -> MatrixA {
    let place = line * MATRIX_STRIDE + k;
    let stride = MATRIX_STRIDE;
    return coopLoadT<coop_mat8x8<f32, A>>(&matrix_a[place], stride);
}
@if(matrices && !half)
fn load_b(line: u32, k: u32) -> MatrixB {
    let place = line * MATRIX_STRIDE + k;
    let stride = MATRIX_STRIDE;
    return coopLoad<coop_mat8x8<f32, B>>(&matrix_b[place], stride);
}
@if(matrices)
fn multiply_add(a: MatrixA, b: MatrixB, c: MatrixC) -> MatrixC {
    return coopMultiplyAdd(a, b, c);
}
@if(matrices && half)
fn leave_sums(c: MatrixC) {
    let place = matrix_subgroup * MATRIX * MATRIX / 4u;
    let stride = MATRIX / 4u;
    coopStoreT(c, &matrix_memory.sums[place], stride);
}
@if(matrices && !half)
fn leave_sums(c: MatrixC) {
    let place = matrix_subgroup * MATRIX * MATRIX;
    let stride = MATRIX;
    coopStoreT(c, &matrix_sums[place], stride);
}

@if(!matrices && half)
fn a_at_term(line: u32, k: u32) -> f32 {
    let i = line * MATRIX_STRIDE + k;
    let word = matrix_a[i / 4u][(i / 2u) & 1u];
    return unpack2x16float(word)[i & 1u];
}
@if(!matrices && half)
fn b_at_term(line: u32, k: u32) -> f32 {
    let i = line * MATRIX_STRIDE + k;
    let word = matrix_b[i / 4u][(i / 2u) & 1u];
    return unpack2x16float(word)[i & 1u];
}
@if(!matrices && !half)
fn a_at_term(line: u32, k: u32) -> f32 {
    return matrix_a[line * MATRIX_STRIDE + k];
}
@if(!matrices && !half)
fn b_at_term(line: u32, k: u32) -> f32 {
    return matrix_b[line * MATRIX_STRIDE + k];
}
@if(!matrices)
fn load_a(line: u32, k: u32) -> MatrixA {
    var a: MatrixA;
    for (var i = 0u; i < matrix_size; i++) {
        a.row[i] = a_at_term(line + (matrix_lane & (MATRIX - 1u)), k + i);
    }
    return a;
}
@if(!matrices)
fn load_b(line: u32, k: u32) -> MatrixB {
    return MatrixB(line, k);
}
@if(!matrices)
fn multiply_add(a: MatrixA, b: MatrixB, c: MatrixC) -> MatrixC {
    var row = a.row;
    var sums = c;
    if matrix_lane < MATRIX {
        for (var column = 0u; column < matrix_size; column++) {
            var sum = sums.row[column];
            for (var i = 0u; i < matrix_size; i++) {
                sum = fma(row[i], b_at_term(b.line + column, b.k + i), sum);
            }
            sums.row[column] = sum;
        }
    }
    return sums;
}
@if(!matrices)
fn leave_sums(c: MatrixC) {
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

// Matrices of a subgroup.
const MATRIX_COUNT = 8u;

// Brings matrix `i` of each subgroup to workgroup memory. All invocations call it.
fn matrix_leave(i: u32) {
    workgroupBarrier();
    switch i {
        case 0u: { leave_sums(c00); }
        case 1u: { leave_sums(c01); }
        case 2u: { leave_sums(c10); }
        case 3u: { leave_sums(c11); }
        case 4u: { leave_sums(c20); }
        case 5u: { leave_sums(c21); }
        case 6u: { leave_sums(c30); }
        default: { leave_sums(c31); }
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

// A sum of the matrix that `matrix_leave` brought.
fn matrix_sum(row: u32, column: u32) -> f32 {
    let place = (matrix_subgroup * MATRIX + row) * MATRIX + column;
    @if(matrices && half)
    return matrix_memory.sums[place / 4u][place % 4u];
    @if(!(matrices && half))
    return matrix_sums[place];
}
