//! Padding with a constant.

use half::{bf16, f16};
use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef};

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
    /// What lies around, in parts that do not overlap.
    borders: Vec<Set>,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let parts = || {
        let Op::Pad(op) = node.op() else { return None };
        let element = match y.dtype {
            DType::F32 => op.value.to_ne_bytes().to_vec(),
            DType::F16 => f16::from_f32(op.value).to_ne_bytes().to_vec(),
            DType::BF16 => bf16::from_f32(op.value).to_ne_bytes().to_vec(),
            DType::I32 => (op.value as i32).to_ne_bytes().to_vec(),
            _ => return None,
        };
        let mut borders = Vec::new();
        // Dimension by dimension, what is before and behind is cut off.
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
    let pad = parts().ok_or_else(|| malformed(resolver, node, "x"))?;
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
