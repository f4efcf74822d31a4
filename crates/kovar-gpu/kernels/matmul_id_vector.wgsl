// Products of single rows of `a` with the matrix that each row's id names.

import package::shared::experts::{
    bases_of_pair, expert_of, experts, first_expert, own_experts,
};
import package::shared::grid::flat_workgroup;
import package::shared::product::params;
import package::shared::subgroups::enter_subgroups;
import package::shared::vector::{VECTOR_WORKGROUP, vector_product};
import package::shared::view::count_of;

@compute @workgroup_size(VECTOR_WORKGROUP)
fn matmul_id_vector(
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
    let pair = index / quads;
    let expert = expert_of(pair);
    let own = expert >= first_expert() && expert - first_expert() < own_experts();
    // The first dispatch writes the pairs without an expert, whose sums are empty.
    let none = expert == experts();
    let writes = own || (none && first_expert() == 0u);
    let bases = bases_of_pair(pair, select(experts(), expert, own));
    let depth = select(0u, params.size.z, own);
    vector_product(bases, index % quads * 4u, lane, depth, writes);
}
