// A convolution over two dims, or its adjoint, of groups with few output channels: an invocation
// computes two neighbouring pixels of up to four channels.

import package::shared::convolution::{
    Part, Pixel, Term, finish_pair, image_at, params, part_of, parts, pixel_of, pixels_of,
    weight_at,
};
import package::shared::grid::flat_workgroup;

override WORKGROUP: u32 = 128u;

// Sums of two pixels.
struct Sums {
    first: vec4<f32>,
    second: vec4<f32>,
}

fn hot_term(part: Part, pixels: array<Pixel, 2>, channel: u32, term: Term, sums: Sums) -> Sums {
    let last = params.result.y - 1u;
    let weights = vec4<f32>(
        weight_at(part, channel, term),
        weight_at(part, min(channel + 1u, last), term),
        weight_at(part, min(channel + 2u, last), term),
        weight_at(part, min(channel + 3u, last), term),
    );
    return Sums(
        fma(weights, vec4<f32>(image_at(part, pixels[0], term)), sums.first),
        fma(weights, vec4<f32>(image_at(part, pixels[1], term)), sums.second),
    );
}

@compute @workgroup_size(WORKGROUP)
fn convolution_direct(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let span = 2u * WORKGROUP;
    let tiles = (pixels_of(part_of(0u)) + span - 1u) / span;
    let quads = (params.result.y + 3u) / 4u;
    let index = flat_workgroup(workgroup, workgroups);
    if index >= tiles * quads * parts() {
        return;
    }
    let part = part_of(index / tiles / quads);
    let pixel = index % tiles * span + 2u * lane;
    let channel = index / tiles % quads * 4u;
    let pixels = array<Pixel, 2>(pixel_of(part, pixel), pixel_of(part, pixel + 1u));
    var sums = Sums();
    for (var i = 0u; i < params.image.y; i++) {
        for (var u = 0u; u < part.vertical.count; u++) {
            for (var v = 0u; v < part.horizontal.count; v++) {
                sums = hot_term(part, pixels, channel, Term(i, u, v), sums);
            }
        }
    }
    finish_pair(part, pixel, channel, sums.first.x, sums.second.x);
    finish_pair(part, pixel, channel + 1u, sums.first.y, sums.second.y);
    finish_pair(part, pixel, channel + 2u, sums.first.z, sums.second.z);
    finish_pair(part, pixel, channel + 3u, sums.first.w, sums.second.w);
}
