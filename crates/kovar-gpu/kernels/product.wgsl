// A product of matrices for each batch, in tiles.

import package::shared::grid::flat_workgroup;
import package::shared::product::{bases_of, params};
import package::shared::product_tile::{Corner, tiled_product};
import package::shared::tile::{TILE_INVOCATIONS, tile_span};

@compute @workgroup_size(TILE_INVOCATIONS)
fn product(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let size = params.size;
    let span = tile_span();
    let rows = (size.x + span - 1u) / span;
    let columns = (size.y + span - 1u) / span;
    let batches = params.batch.x * params.batch.y * params.batch.z * params.batch.w;
    let tile = flat_workgroup(workgroup, workgroups);
    if tile >= rows * columns * batches {
        return;
    }
    // Neighbours share the lines of `b`, which are weights as a rule.
    let corner = Corner(tile % rows * span, tile / rows % columns * span);
    let bases = bases_of(tile / rows / columns);
    tiled_product(bases, corner, lane);
}
