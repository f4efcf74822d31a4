// Products of single lines of `a` with the matrix that each one's id names.

import package::shared::experts::{
    bases_of_pair, expert_of, experts, first_expert, own_experts,
};
import package::shared::grid::flat_workgroup;
import package::shared::product::params;
import package::shared::vector::{Member, VECTOR_WORKGROUP, vector_product};

@compute @workgroup_size(VECTOR_WORKGROUP)
fn matmul_id_vector(
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
    let pair = index / quads;
    let expert = expert_of(pair);
    let own = expert >= first_expert() && expert - first_expert() < own_experts();
    // Pairs without an expert are the first dispatch's, and their sums are empty.
    let none = expert == experts();
    let writes = own || (none && first_expert() == 0u);
    let bases = bases_of_pair(pair, select(experts(), expert, own));
    let terms = select(0u, params.size.z, own);
    vector_product(bases, index % quads * 4u, lane, member, terms, writes);
}
