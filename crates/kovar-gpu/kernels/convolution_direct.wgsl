// A convolution over two dims, or its adjoint, of groups with few output channels: an invocation
// computes two neighbouring pixels of up to four channels.

import package::shared::convolution::{
    Phase, Pixel, Tap, corner_of, finish_pair, image_at, params, pixel_of, weight_at,
};
import package::shared::grid::{WORKGROUP, flat_workgroup};

// Sums of two pixels.
struct Sums {
    first: vec4<f32>,
    second: vec4<f32>,
}

fn hot_tap(phase: Phase, pixels: array<Pixel, 2>, channel: u32, tap: Tap, sums: Sums) -> Sums {
    let last = params.result.y - 1u;
    let weights = vec4<f32>(
        weight_at(phase, channel, tap),
        weight_at(phase, min(channel + 1u, last), tap),
        weight_at(phase, min(channel + 2u, last), tap),
        weight_at(phase, min(channel + 3u, last), tap),
    );
    return Sums(
        fma(weights, vec4<f32>(image_at(phase, pixels[0], tap)), sums.first),
        fma(weights, vec4<f32>(image_at(phase, pixels[1], tap)), sums.second),
    );
}

@compute @workgroup_size(WORKGROUP)
fn convolution_direct(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let corner = corner_of(flat_workgroup(workgroup, workgroups), 2u * WORKGROUP, 4u);
    if !corner.inside {
        return;
    }
    let phase = corner.phase;
    let pixel = corner.pixel + 2u * lane;
    let channel = corner.channel;
    let pixels = array<Pixel, 2>(pixel_of(phase, pixel), pixel_of(phase, pixel + 1u));
    var sums = Sums();
    for (var i = 0u; i < params.image.y; i++) {
        for (var u = 0u; u < phase.vertical.count; u++) {
            for (var v = 0u; v < phase.horizontal.count; v++) {
                sums = hot_tap(phase, pixels, channel, Tap(i, u, v), sums);
            }
        }
    }
    finish_pair(phase, pixel, channel, sums.first.x, sums.second.x);
    finish_pair(phase, pixel, channel + 1u, sums.first.y, sums.second.y);
    finish_pair(phase, pixel, channel + 2u, sums.first.z, sums.second.z);
    finish_pair(phase, pixel, channel + 3u, sums.first.w, sums.second.w);
}
