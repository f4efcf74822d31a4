// Blocks of the factors of a convolution as a product: four pixels or output channels by four
// elements along K.

import package::shared::convolution::{
    Phase, Pixel, Tap, depth_of, image_at, params, pixel_of, tap_of, weight_at,
};

// Four pixels.
struct Four {
    p0: Pixel,
    p1: Pixel,
    p2: Pixel,
    p3: Pixel,
}

fn image_column(phase: Phase, pixels: Four, k: u32) -> vec4<f32> {
    if k >= depth_of(phase) {
        return vec4<f32>();
    }
    let tap = tap_of(phase, k);
    return vec4<f32>(
        image_at(phase, pixels.p0, tap),
        image_at(phase, pixels.p1, tap),
        image_at(phase, pixels.p2, tap),
        image_at(phase, pixels.p3, tap),
    );
}

fn weight_column(phase: Phase, channel: u32, k: u32) -> vec4<f32> {
    if k >= depth_of(phase) {
        return vec4<f32>();
    }
    let tap = tap_of(phase, k);
    return vec4<f32>(
        weight_or_zero(phase, channel, tap),
        weight_or_zero(phase, channel + 1u, tap),
        weight_or_zero(phase, channel + 2u, tap),
        weight_or_zero(phase, channel + 3u, tap),
    );
}

fn weight_or_zero(phase: Phase, channel: u32, tap: Tap) -> f32 {
    if channel >= params.result.y {
        return 0.0;
    }
    return weight_at(phase, channel, tap);
}

fn four_pixels(phase: Phase, first: u32) -> Four {
    return Four(
        pixel_of(phase, first),
        pixel_of(phase, first + 1u),
        pixel_of(phase, first + 2u),
        pixel_of(phase, first + 3u),
    );
}

// Elements `k` to `k + 3` (columns) of the pixels, zeros outside.
fn image_block(phase: Phase, pixels: Four, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        image_column(phase, pixels, k),
        image_column(phase, pixels, k + 1u),
        image_column(phase, pixels, k + 2u),
        image_column(phase, pixels, k + 3u),
    );
}

// The same of output channels of the group.
fn weight_block(phase: Phase, channel: u32, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        weight_column(phase, channel, k),
        weight_column(phase, channel, k + 1u),
        weight_column(phase, channel, k + 2u),
        weight_column(phase, channel, k + 3u),
    );
}
