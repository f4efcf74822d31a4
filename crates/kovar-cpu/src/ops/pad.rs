//! Padding with a constant.

use kovar_core::ops::Op;
use kovar_core::{NodeRef, plain};

use super::elements::{Move, Set};
use super::{Compiled, Entry, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    compile,
};

struct Pad {
    inner: Move,
    /// The windows around it, which do not overlap.
    borders: Vec<Set>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let make = || {
        let Op::Pad(op) = node.op() else { return None };
        let mut element = vec![0; y.dtype.block_bytes()];
        plain::encode_f64(y.dtype, &[op.value.into()], &mut element).ok()?;
        let mut borders = Vec::new();
        // For each dimension, the borders before and after `x` are cut off.
        let mut left = y.layout;
        for (dim, &size) in x.layout.dims().iter().enumerate() {
            let start = *op.before.get(dim)?;
            let (end, whole) = (start + size, *left.dims().get(dim)?);
            for border in [0..start, end..whole] {
                let border = y.with_layout(left.slice(dim, border)?);
                borders.push(Set::new(&border, element.clone())?);
            }
            left = left.slice(dim, start..end)?;
        }
        let inner = Move::new(&x, &y.with_layout(left))?;
        Some(Pad { inner, borders })
    };
    let pad = make().ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(pad))
}

impl Kernel for Pad {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by this function's contract; the result does not overlap `x`.
        unsafe {
            for border in &self.borders {
                border.run(run);
            }
            self.inner.run(run);
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        "pad"
    }
}
