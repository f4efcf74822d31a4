// The subgroup that an invocation belongs to. Lanes may be assigned to subgroups in any order.

@if(subgroups) var<private> own_subgroup: u32;
@if(subgroups) var<private> all_subgroups: u32;
@if(subgroups) var<private> leads_subgroup: bool;

// Sets the lane's subgroup, the number of subgroups and the lane's number in its subgroup.
@if(subgroups)
fn enter_subgroups(id: u32, count: u32, invocation: u32) {
    own_subgroup = id;
    all_subgroups = count;
    leads_subgroup = invocation == 0u;
}
