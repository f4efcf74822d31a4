// Sums along rows of `a`.

import package::shared::a::a_at;
import package::shared::b::b_at;
import package::shared::reduce::sum_lanes;
import package::shared::rows::{Chunk, Rows};

// The lane's share of the sum of a chunk's elements. The row begins at `start` of `a`.
fn sum_of(chunk: Chunk, start: u32, stride: u32) -> f32 {
    var sum = 0.0;
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        sum += a_at(start + i * stride);
    }
    return sum;
}

// The lane's share of the sum of their squares.
fn sum_of_squares(chunk: Chunk, start: u32, stride: u32) -> f32 {
    var sum = 0.0;
    for (var i = chunk.first + chunk.lane; i < chunk.last; i += chunk.lanes) {
        let x = a_at(start + i * stride);
        sum += x * x;
    }
    return sum;
}

// The sum of the squares of a whole row, for each of its lanes: of its elements, or, if it has
// several chunks, of their sums, which an earlier dispatch wrote to `b`.
fn row_squares(rows: Rows, chunk: Chunk, start: u32, stride: u32, lane: u32) -> f32 {
    var sum = 0.0;
    if rows.chunks == 1u {
        sum = sum_of_squares(chunk, start, stride);
    } else {
        for (var i = chunk.lane; i < rows.chunks; i += chunk.lanes) {
            sum += b_at(chunk.row * rows.chunks + i);
        }
    }
    return sum_lanes(lane, rows.log2_lanes, sum);
}
