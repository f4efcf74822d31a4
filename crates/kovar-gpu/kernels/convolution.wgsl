// A convolution over two dims, or its adjoint, in tiles of pixels and output channels.

import package::shared::convolution::corner_of;
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
    let corner = corner_of(flat_workgroup(workgroup, workgroups), span, span);
    if corner.inside {
        tiled_convolution(corner, lane);
    }
}
