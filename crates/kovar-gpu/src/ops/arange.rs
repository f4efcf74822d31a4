//! An arithmetic progression.

use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef};

use super::pieces::{MAX_ELEMENTS, fits_anywhere, slice};
use super::rearrange::unit;
use super::{Entry, Planned, WORKGROUP, no_kernel};
use crate::kernel::{Dispatch, Features, Kernel, Params};
use crate::program::Resolver;

static KERNEL: Kernel = Kernel::new("arange", 0);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| &[],
    // F64 is left out: the kernel computes exact sums, but in F64 the product is rounded first.
    result: |_| &[DType::F32, DType::I32, DType::I64],
    refuses: |_, _| None,
    plan,
};

/// `value / 2^exponent`, rounded towards zero; `value` is less than `2^(exponent + 95)`.
fn fixed(value: f64, exponent: i32) -> i128 {
    let bits = value.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let mantissa = if biased == 0 {
        fraction
    } else {
        fraction | 1 << 52
    };
    let shift = biased.max(1) - 1075 - exponent;
    let magnitude = match shift {
        0.. => mantissa << shift.min(95),
        _ => mantissa >> shift.unsigned_abs().min(127),
    };
    if value < 0.0 { -magnitude } else { magnitude }
}

/// The exponent of a unit in which `value` has 93 bits, or a little less.
fn exponent_for(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52 & 0x7ff) as i32;
    biased.max(1) - 1023 - 92
}

fn words(value: i128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (value >> shift) as u32)
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Arange(op) = node.op() else {
        return Err(refused());
    };
    let (caps, out) = (resolver.shared.device.caps(), resolver.output(node)?);
    let is_float = out.dtype == DType::F32;
    let exponent = if is_float {
        exponent_for(op.start.abs().max((op.step * op.n as f64).abs()))
    } else {
        // Progressions of integers have an integer start and step.
        0
    };
    let (start, step) = (fixed(op.start, exponent), fixed(op.step, exponent));
    let piece = |from: usize, len: usize| slice(&out, 0, from..(from + len).min(op.n));
    let mut chunk = op.n.min(MAX_ELEMENTS / 2);
    while chunk > 1 && !fits_anywhere(caps, &piece(0, chunk).ok_or_else(refused)?) {
        chunk = chunk.div_ceil(2);
    }
    let (_, split) = unit(out.dtype).ok_or_else(refused)?;
    let mut dispatches = Vec::new();
    for from in (0..op.n).step_by(chunk.max(1)) {
        let piece = piece(from, chunk).ok_or_else(refused)?;
        let n = piece.layout.elements() as u32;
        let view = piece.view(piece.layout.strides(), caps.binding_alignment);
        let first = start.wrapping_add(step.wrapping_mul(from as i128));
        let params = Params::new().vec4(words(first)).vec4(words(step)).vec4([
            n,
            view.offset,
            view.strides[3],
            exponent as u32,
        ]);
        dispatches.push(Dispatch {
            kernel: &KERNEL,
            features: Features::NONE,
            constants: vec![
                ("FLOAT", u32::from(is_float)),
                ("SPLIT", split),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: vec![piece],
            workgroups: (n << split).div_ceil(WORKGROUP),
        });
    }
    Ok(dispatches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_numbers_keep_every_bit_of_the_largest() {
        for value in [1.0, -0.1, 1e30, -1e-300, 5e-324, 9_007_199_254_740_991.0] {
            let exponent = exponent_for(value);
            let number = fixed(value, exponent);
            assert!(number.unsigned_abs() < 1 << 93, "{value}");
            let back = number as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
            assert_eq!(back, value);
        }
        assert_eq!(fixed(-3.0, 0), -3);
        assert_eq!(fixed(1e-40, 0), 0);
    }
}
