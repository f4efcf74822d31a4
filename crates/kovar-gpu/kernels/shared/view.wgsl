// Positions in windows of up to four dims, outermost first. All counts are in elements.

struct View {
    strides: vec4<u32>,
    offset: u32,
}

// The elements of a tensor of these dims.
fn count_of(dims: vec4<u32>) -> u32 {
    return dims.x * dims.y * dims.z * dims.w;
}

// The coordinates of the element at index `i` of the row-major order.
fn unravel(i: u32, dims: vec4<u32>) -> vec4<u32> {
    // Divisions cost more than most kernels' arithmetic, and most tensors have one or two dims
    // here.
    if dims.x * dims.y * dims.z == 1u {
        return vec4<u32>(0u, 0u, 0u, i);
    }
    let z = i / dims.w;
    if dims.x * dims.y == 1u {
        return vec4<u32>(0u, 0u, z, i - z * dims.w);
    }
    let y = z / dims.z;
    let x = y / dims.y;
    return vec4<u32>(x, y - x * dims.y, z - y * dims.z, i - z * dims.w);
}

fn position(view: View, at: vec4<u32>) -> u32 {
    let steps = view.strides * at;
    return view.offset + steps.x + steps.y + steps.z + steps.w;
}
