// Blocks of the factors of a convolution as a product: four pixels or output channels, four terms.

import package::shared::convolution::{
    Part, Pixel, Term, image_at, params, pixel_of, term_of, terms_of, weight_at,
};

// Four pixels.
struct Four {
    p0: Pixel,
    p1: Pixel,
    p2: Pixel,
    p3: Pixel,
}

fn image_term(part: Part, pixels: Four, i: u32) -> vec4<f32> {
    if i >= terms_of(part) {
        return vec4<f32>();
    }
    let term = term_of(part, i);
    return vec4<f32>(
        image_at(part, pixels.p0, term),
        image_at(part, pixels.p1, term),
        image_at(part, pixels.p2, term),
        image_at(part, pixels.p3, term),
    );
}

fn weight_term(part: Part, channel: u32, i: u32) -> vec4<f32> {
    if i >= terms_of(part) {
        return vec4<f32>();
    }
    let term = term_of(part, i);
    return vec4<f32>(
        weight_or_zero(part, channel, term),
        weight_or_zero(part, channel + 1u, term),
        weight_or_zero(part, channel + 2u, term),
        weight_or_zero(part, channel + 3u, term),
    );
}

fn weight_or_zero(part: Part, channel: u32, term: Term) -> f32 {
    if channel >= params.result.y {
        return 0.0;
    }
    return weight_at(part, channel, term);
}

fn four_pixels(part: Part, first: u32) -> Four {
    return Four(
        pixel_of(part, first),
        pixel_of(part, first + 1u),
        pixel_of(part, first + 2u),
        pixel_of(part, first + 3u),
    );
}

// Terms `i` to `i + 3` (columns) of the pixels, 0 beyond the last.
fn image_block(part: Part, pixels: Four, i: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        image_term(part, pixels, i),
        image_term(part, pixels, i + 1u),
        image_term(part, pixels, i + 2u),
        image_term(part, pixels, i + 3u),
    );
}

// The same of output channels of the group.
fn weight_block(part: Part, channel: u32, i: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        weight_term(part, channel, i),
        weight_term(part, channel, i + 1u),
        weight_term(part, channel, i + 2u),
        weight_term(part, channel, i + 3u),
    );
}
