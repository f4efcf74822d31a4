// A convolution over two dims, or its adjoint, in tiles of pixels and output channels.

import package::shared::convolution::{params, part_of, parts, pixels_of};
import package::shared::convolution_tile::tiled_convolution;
import package::shared::grid::flat_workgroup;
import package::shared::tile::{TILE_INVOCATIONS, tile_span};

@compute @workgroup_size(TILE_INVOCATIONS)
fn convolution(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let span = tile_span();
    // The first part has the most pixels.
    let tiles = (pixels_of(part_of(0u)) + span - 1u) / span;
    let columns = (params.result.y + span - 1u) / span;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= tiles * columns * parts() {
        return;
    }
    let first_pixel = index % tiles * span;
    let first_channel = index / tiles % columns * span;
    let part = part_of(index / tiles / columns);
    tiled_convolution(part, first_pixel, first_channel, lane);
}
