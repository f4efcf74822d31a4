// Rows along the last dim: which part of which row an invocation works on.

import package::shared::view::unravel;

struct Rows {
    // Three outer sizes, and the length of a row.
    dims: vec4<u32>,
    // The base-2 logarithm of the lanes that share a part, 8 at most.
    log2_lanes: u32,
    // The elements of a chunk, and the chunks of a row.
    chunk: u32,
    chunks: u32,
    // How many rows there are.
    count: u32,
}

// A chunk of a row.
struct Part {
    // The outer coordinates, and 0.
    at: vec4<u32>,
    row: u32,
    // Its number among all chunks of all rows.
    number: u32,
    // The columns; none if there is no such part.
    first: u32,
    last: u32,
    // Whether there is such a part.
    inside: bool,
    // The invocation's number among those that share the part, and how many they are.
    lane: u32,
    lanes: u32,
}

fn part_of(rows: Rows, workgroup: u32, lane: u32) -> Part {
    var part: Part;
    let number = (workgroup << (8u - rows.log2_lanes)) + (lane >> rows.log2_lanes);
    part.inside = number < rows.count * rows.chunks;
    part.number = select(0u, number, part.inside);
    part.row = part.number / rows.chunks;
    let at = unravel(part.row, vec4<u32>(1u, rows.dims.xyz));
    part.at = vec4<u32>(at.yzw, 0u);
    part.first = (part.number - part.row * rows.chunks) * rows.chunk;
    part.last = select(part.first, min(part.first + rows.chunk, rows.dims.w), part.inside);
    part.lanes = 1u << rows.log2_lanes;
    part.lane = lane & (part.lanes - 1u);
    return part;
}
