// Whether f16 is precise enough for a product: a factor of another dtype must not overflow, and its
// greatest magnitude must not be among the smallest numbers.

import package::shared::element::{BF16, F32};

var<private> peak_a: f32;
var<private> peak_b: f32;
var<workgroup> peaks: array<atomic<u32>, 2>;
var<workgroup> exceeds: u32;

fn peaks_begin(lane: u32) {
    peak_a = 0.0;
    peak_b = 0.0;
    if lane < 2u {
        atomicStore(&peaks[lane], 0u);
    }
}

fn block_peak(block: mat4x4<f32>) -> f32 {
    let all = max(max(abs(block[0]), abs(block[1])), max(abs(block[2]), abs(block[3])));
    return max(max(all.x, all.y), max(all.z, all.w));
}

// Records the peak of a block of a factor.
fn peaks_note(is_b: bool, a_dtype: u32, b_dtype: u32, block: mat4x4<f32>) {
    if is_b {
        if b_dtype == F32 || b_dtype == BF16 {
            peak_b = max(peak_b, block_peak(block));
        }
    } else if a_dtype == F32 || a_dtype == BF16 {
        peak_a = max(peak_a, block_peak(block));
    }
}

fn fits_half(peak: f32) -> bool {
    return peak == 0.0 || (peak >= 0.00390625 && peak <= 65504.0);
}

// Whether f16 can hold all blocks of the workgroup. All invocations call it.
fn peaks_fit(lane: u32) -> bool {
    workgroupBarrier();
    // Magnitudes are in the order of their bits.
    atomicMax(&peaks[0], bitcast<u32>(peak_a));
    atomicMax(&peaks[1], bitcast<u32>(peak_b));
    workgroupBarrier();
    if lane == 0u {
        let fit = fits_half(bitcast<f32>(atomicLoad(&peaks[0])))
            && fits_half(bitcast<f32>(atomicLoad(&peaks[1])));
        exceeds = select(1u, 0u, fit);
    }
    return workgroupUniformLoad(&exceeds) == 0u;
}
