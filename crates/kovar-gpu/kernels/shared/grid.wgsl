// Workgroups lie in a grid: devices limit a row of it to 65,535.

// Invocations of a workgroup.
override WORKGROUP: u32 = 256u;

fn flat_workgroup(id: vec3<u32>, count: vec3<u32>) -> u32 {
    return id.y * count.x + id.x;
}
