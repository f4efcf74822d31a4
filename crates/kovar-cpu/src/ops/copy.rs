//! Copies, casts, and contiguous copies of views.

use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef, plain};

use super::elements::{Move, move_elements};
use super::rows::{PIECE, Walk};
use super::{COPIES, Compiled, ENCODED, Entry, PLAIN, WEIGHTS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| match result(op) {
        block if block.is_quantized() => WEIGHTS,
        float if ENCODED.contains(&float) => &DType::ALL,
        _ => PLAIN,
    },
    result: |_| COPIES,
    compile,
};

fn result(op: &Op) -> DType {
    match op {
        Op::Copy(copy) => copy.dtype,
        _ => DType::F32,
    }
}

/// The elements that a cast takes at a time, and the most bytes of an element.
const CAST: usize = 256;
const MAX_BYTES: usize = 8;

/// To the same dtype.
struct Same(Move);

/// From a dtype that decodes to f32 exactly to one that f32 encodes to.
struct ByFloats(Walk<2>);

/// Between any plain dtypes.
struct Cast {
    walk: Walk<2>,
    dtypes: [DType; 2],
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "x");
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    if x.dtype == y.dtype {
        return Ok(Box::new(Same(Move::new(&x, &y).ok_or_else(malformed)?)));
    }
    let walk = Walk::merged([&x, &y]).ok_or_else(malformed)?;
    if (x.dtype.is_quantized() || WEIGHTS.contains(&x.dtype)) && ENCODED.contains(&y.dtype) {
        return Ok(Box::new(ByFloats(walk)));
    }
    let dtypes = [x.dtype, y.dtype];
    Ok(Box::new(Cast { walk, dtypes }))
}

impl Kernel for Same {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by this function's contract; the result does not overlap `x`.
        unsafe { self.0.run(run) };
        Ok(())
    }

    fn name(&self) -> &'static str {
        "copy"
    }
}

impl Kernel for ByFloats {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.0.forms;
        self.0.pieces(run, &|[x, y], n| {
            let mut buffer = [0.0; PIECE];
            // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
            // writable.
            unsafe {
                let x = x_form.read(run.vector, x, n, buffer.as_mut_ptr());
                y_form.write(run.vector, x, n, y);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "copy"
    }
}

impl Kernel for Cast {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        let [from, to] = self.dtypes;
        let [from_bytes, to_bytes] = self.dtypes.map(DType::block_bytes);
        self.walk.pieces(run, &|[x, y], n| {
            let (mut old, mut new) = ([0; CAST * MAX_BYTES], [0; CAST * MAX_BYTES]);
            for first in (0..n).step_by(CAST) {
                let n = CAST.min(n - first);
                let (old, new) = (&mut old[..n * from_bytes], &mut new[..n * to_bytes]);
                let source = (x_form.at(x, first).cast_const(), x_form.stride());
                let target = (y_form.at(y, first), y_form.stride());
                // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
                // writable, and the buffers have room for them.
                unsafe {
                    move_elements(from_bytes, source, (old.as_mut_ptr(), 1), n);
                    // Both are plain and of `n` elements, so casting cannot fail.
                    let _ = plain::cast(from, old, to, new);
                    move_elements(to_bytes, (new.as_ptr(), 1), target, n);
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "cast"
    }
}
