// Rows along the last dim, and the chunk of a row that an invocation works on.

import package::shared::view::unravel;

struct Rows {
    // Three outer sizes, and the length of a row.
    dims: vec4<u32>,
    // The base-2 logarithm of the lanes that share a chunk, at most 8.
    log2_lanes: u32,
    // The elements of a chunk, and the chunks of a row.
    chunk: u32,
    chunks: u32,
    // The number of rows.
    count: u32,
}

struct Chunk {
    // The outer coordinates of its row, and 0.
    at: vec4<u32>,
    row: u32,
    // Its index among the chunks of all rows.
    index: u32,
    // Its range of columns, empty if there is no such chunk.
    first: u32,
    last: u32,
    // Whether there is such a chunk.
    inside: bool,
    // The invocation's number among those that share the chunk, and their number.
    lane: u32,
    lanes: u32,
}

fn chunk_of(rows: Rows, workgroup: u32, lane: u32) -> Chunk {
    var chunk: Chunk;
    let index = (workgroup << (8u - rows.log2_lanes)) + (lane >> rows.log2_lanes);
    chunk.inside = index < rows.count * rows.chunks;
    chunk.index = select(0u, index, chunk.inside);
    chunk.row = chunk.index / rows.chunks;
    let at = unravel(chunk.row, vec4<u32>(1u, rows.dims.xyz));
    chunk.at = vec4<u32>(at.yzw, 0u);
    chunk.first = (chunk.index - chunk.row * rows.chunks) * rows.chunk;
    chunk.last = select(chunk.first, min(chunk.first + rows.chunk, rows.dims.w), chunk.inside);
    chunk.lanes = 1u << rows.log2_lanes;
    chunk.lane = lane & (chunk.lanes - 1u);
    return chunk;
}
