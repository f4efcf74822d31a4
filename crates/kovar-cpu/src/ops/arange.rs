//! An arithmetic progression.

use kovar_core::ops::Op;
use kovar_core::{DType, NodeRef};

use super::{Compiled, Entry, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| &[],
    result: |_| &[DType::F32, DType::I32, DType::F64, DType::I64],
    compile,
};

/// The least elements of a chunk.
const GRAIN: usize = 1 << 14;

struct Arange {
    y: Address,
    n: usize,
    /// Bytes between neighbours.
    stride: usize,
    start: f64,
    step: f64,
    dtype: DType,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let Op::Arange(op) = node.op() else {
        return Err(malformed(resolver, node, "result"));
    };
    let y = resolver.write(node)?;
    Ok(Box::new(Arange {
        y: y.start(),
        n: y.layout.elements(),
        stride: y.bytes(y.layout.stride_from_end(0)),
        start: op.start,
        step: op.step,
        dtype: y.dtype,
    }))
}

impl Kernel for Arange {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        run.pool.run_ranges(self.n, GRAIN, &|range, _| {
            for i in range {
                let to = self.y.get().wrapping_add(i * self.stride);
                let float = self.start + i as f64 * self.step;
                let whole = (i as i64).wrapping_mul(self.step as i64);
                let integer = (self.start as i64).wrapping_add(whole);
                // SAFETY: the element is inside the result, by `Kernel::run`'s contract writable.
                unsafe {
                    match self.dtype {
                        DType::I32 => to.cast::<i32>().write_unaligned(integer as i32),
                        DType::I64 => to.cast::<i64>().write_unaligned(integer),
                        DType::F64 => to.cast::<f64>().write_unaligned(float),
                        _ => to.cast::<f32>().write_unaligned(float as f32),
                    }
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "arange"
    }
}
