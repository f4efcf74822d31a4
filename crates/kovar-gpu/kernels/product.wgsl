// A product of matrices for each batch, in tiles.

import package::shared::grid::flat_workgroup;
import package::shared::product::bases_of;
import package::shared::product_tile::{corner_of, tiled_product};
import package::shared::tile::{TILE_INVOCATIONS, tile_span};

@compute @workgroup_size(TILE_INVOCATIONS)
fn product(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let corner = corner_of(flat_workgroup(workgroup, workgroups), tile_span());
    if corner.inside {
        tiled_product(bases_of(corner.batch), corner, lane);
    }
}
