// A product of matrices for each batch, of few lines of `a`, whose terms are contiguous in `b`: a
// workgroup computes the sums of four lines of `b`.

import package::shared::grid::flat_workgroup;
import package::shared::product::{bases_of, params};
import package::shared::vector::{Member, VECTOR_WORKGROUP, vector_product};

@compute @workgroup_size(VECTOR_WORKGROUP)
fn product_vector(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) subgroup_lane: u32,
) {
    let quads = (params.size.y + 3u) / 4u;
    let batches = params.batch.x * params.batch.y * params.batch.z * params.batch.w;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= quads * batches {
        return;
    }
    @if(subgroups)
    let member = Member(subgroup, subgroups, subgroup_lane == 0u);
    @if(!subgroups)
    let member = Member(lane, VECTOR_WORKGROUP, true);
    let bases = bases_of(index / quads);
    vector_product(bases, index % quads * 4u, lane, member, params.size.z, true);
}
