// A product of matrices for each batch, of few rows of `a` and a K-major `b`: a workgroup computes
// the sums of four rows of `b`.

import package::shared::grid::flat_workgroup;
import package::shared::product::{bases_of, params};
import package::shared::subgroups::enter_subgroups;
import package::shared::vector::{VECTOR_WORKGROUP, vector_product};
import package::shared::view::count_of;

@compute @workgroup_size(VECTOR_WORKGROUP)
fn product_vector(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @if(subgroups) @builtin(subgroup_id) subgroup: u32,
    @if(subgroups) @builtin(num_subgroups) subgroups: u32,
    @if(subgroups) @builtin(subgroup_invocation_id) invocation: u32,
) {
    @if(subgroups) enter_subgroups(subgroup, subgroups, invocation);
    let quads = (params.size.y + 3u) / 4u;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= quads * count_of(params.batch) {
        return;
    }
    vector_product(bases_of(index / quads), index % quads * 4u, lane, params.size.z, true);
}
