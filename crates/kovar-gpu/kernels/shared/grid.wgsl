// Workgroups in one row, which devices limit to 65,535, or several.

fn flat_workgroup(id: vec3<u32>, count: vec3<u32>) -> u32 {
    return id.y * count.x + id.x;
}
