// (a cos - b sin, a sin + b cos) for each pair (a, b) of each head; what does not turn is copied.

import package::shared::grid::flat_workgroup;
import package::shared::turn::turn;

@compute @workgroup_size(256)
fn rope(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    turn(flat_workgroup(workgroup, workgroups) * 256u + lane);
}
