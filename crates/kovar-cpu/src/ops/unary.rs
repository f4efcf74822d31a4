//! Elementwise operations on one operand.

use std::mem::MaybeUninit;

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UnaryKind};

use super::rows::{PIECE, Walk};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};
use crate::vector::Kernels;

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if body_of(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    compile,
};

struct Unary {
    walk: Walk<2>,
    body: Body,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let malformed = || malformed(resolver, node, "x");
    Ok(Box::new(Unary {
        walk: Walk::merged([&x, &y]).ok_or_else(malformed)?,
        body: body_of(node.op()).ok_or_else(malformed)?,
        name: node.op().name(),
    }))
}

/// A kernel on one f32 row.
type RowFn = unsafe fn(*const f32, *mut f32, usize);

/// The function of a kind.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// One of the vector kernels.
    Vector(fn(&Kernels) -> RowFn),
    /// A function without a vector form, in a loop over elements.
    Each(fn(f32) -> f32),
    Sqrt,
    LeakyRelu(f32),
    Clamp(f32, f32),
    Scale(f32),
}

/// The function of a `unary` or `scale` operation.
pub(super) fn body_of(op: &Op) -> Option<Body> {
    let op = match op {
        Op::Unary(op) => op,
        Op::Scale(op) => return Some(Body::Scale(op.scale)),
        _ => return None,
    };
    Some(match op.kind {
        UnaryKind::Exp => Body::Vector(|kernels| kernels.exp),
        UnaryKind::Tanh => Body::Vector(|kernels| kernels.tanh),
        UnaryKind::Sigmoid => Body::Vector(|kernels| kernels.sigmoid),
        UnaryKind::Silu => Body::Vector(|kernels| kernels.silu),
        UnaryKind::Gelu => Body::Vector(|kernels| kernels.gelu),
        UnaryKind::GeluTanh => Body::Vector(|kernels| kernels.gelu_tanh),
        UnaryKind::GeluQuick => Body::Vector(|kernels| kernels.gelu_quick),
        UnaryKind::Relu => Body::Vector(|kernels| kernels.relu),
        UnaryKind::ReluSqr => Body::Vector(|kernels| kernels.relu_sqr),
        UnaryKind::Neg => Body::Vector(|kernels| kernels.neg),
        UnaryKind::Abs => Body::Vector(|kernels| kernels.abs),
        UnaryKind::Sqr => Body::Vector(|kernels| kernels.sqr),
        UnaryKind::Sqrt => Body::Sqrt,
        UnaryKind::Log => Body::Each(f32::ln),
        UnaryKind::Sin => Body::Each(f32::sin),
        UnaryKind::Cos => Body::Each(f32::cos),
        UnaryKind::Softplus => Body::Each(softplus),
        UnaryKind::LeakyRelu { slope } => Body::LeakyRelu(slope),
        UnaryKind::Clamp { min, max } => Body::Clamp(min, max),
        _ => return None,
    })
}

/// `ln(1 + e^x)`, computed as `max(x, 0) + ln(1 + e^-|x|)`, which does not overflow.
fn softplus(x: f32) -> f32 {
    let above = if x < 0.0 { 0.0 } else { x };
    above + (-x.abs()).exp().ln_1p()
}

impl Body {
    /// `y = f(x)`
    ///
    /// # Safety
    /// `x` is readable and `y` is writable for `n` elements; they are the same or apart.
    pub(super) unsafe fn row(self, kernels: &Kernels, x: *const f32, y: *mut f32, n: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            match self {
                Body::Vector(kernel) => kernel(kernels)(x, y, n),
                Body::Sqrt => each(x, y, n, f32::sqrt),
                Body::Each(f) => each(x, y, n, f),
                Body::LeakyRelu(slope) => {
                    each(x, y, n, |x| if x < 0.0 { slope * x } else { x });
                }
                Body::Scale(factor) => (kernels.scale)(x, y, n, factor),
                // Comparisons that keep NaN.
                Body::Clamp(min, max) => each(x, y, n, |x| {
                    let x = if x < min { min } else { x };
                    if x > max { max } else { x }
                }),
            }
        }
    }
}

/// # Safety
/// As [`Body::row`].
#[inline(always)]
unsafe fn each(x: *const f32, y: *mut f32, n: usize, f: impl Fn(f32) -> f32) {
    for i in 0..n {
        // SAFETY: by this function's contract.
        unsafe { *y.add(i) = f(*x.add(i)) }
    }
}

impl Kernel for Unary {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        self.walk.pieces(run, &|[x, y], n| {
            let mut buffer = MaybeUninit::<[f32; PIECE]>::uninit();
            let buffer = buffer.as_mut_ptr().cast::<f32>();
            // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
            // writable; in place, a piece is read before it is written.
            unsafe {
                let x = x_form.read(run.vector, x, n, buffer);
                let target = y_form.target(y, buffer);
                self.body.row(run.vector, x, target, n);
                y_form.write(run.vector, target, n, y);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
