// Each pair of each head times its 2 x 2 matrix.

import package::shared::grid::flat_workgroup;
import package::shared::turn::turn;

@compute @workgroup_size(256)
fn rope_apply(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    turn(flat_workgroup(workgroup, workgroups) * 256u + lane);
}
