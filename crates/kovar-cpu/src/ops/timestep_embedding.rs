//! Sinusoidal embeddings of diffusion time steps.

use kovar_core::ops::{Op, TimestepEmbedding};
use kovar_core::{DType, NodeRef};

use super::rows::{Walk, repeated};
use super::{Compiled, Entry, F32, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| F32,
    compile,
};

struct Embedding {
    /// Each time step repeated along its row, and the row of the result.
    walk: Walk<2>,
    /// The factors on the time steps.
    frequencies: Vec<f64>,
    cosines_first: bool,
    /// Bytes between neighbours of a row of the result.
    stride: usize,
    integer: bool,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "t");
    let Op::TimestepEmbedding(op) = node.op() else {
        return Err(malformed());
    };
    let (t, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let repeated = repeated(&t, y.layout.dims()).ok_or_else(malformed)?;
    Ok(Box::new(Embedding {
        walk: Walk::rows([&repeated, &y]).ok_or_else(malformed)?,
        frequencies: frequencies(op),
        cosines_first: op.flip_sin_to_cos,
        stride: y.bytes(y.layout.stride_from_end(0)),
        integer: t.dtype == DType::I32,
    }))
}

fn frequencies(op: &TimestepEmbedding) -> Vec<f64> {
    let half = op.dim / 2;
    let steps = half as f64 - f64::from(op.downscale_freq_shift);
    let frequency = |i: usize| f64::from(op.max_period).powf(-(i as f64) / steps);
    let scaled = |i| f64::from(op.scale) * frequency(i);
    (0..half).map(scaled).collect()
}

impl Kernel for Embedding {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [t_form, _] = self.walk.forms;
        let half = self.frequencies.len();
        self.walk.each_row(run, &|_, [t, y], _| {
            // SAFETY: the time step is inside its operand, by `Kernel::run`'s contract readable.
            let t = unsafe {
                if self.integer {
                    f64::from(t.cast::<i32>().read_unaligned())
                } else {
                    let mut float = 0f32;
                    t_form.read_to(run.vector, t, 1, &mut float);
                    f64::from(float)
                }
            };
            let set = |column: usize, value: f32| {
                // SAFETY: the column is inside the row, by `Kernel::run`'s contract writable.
                unsafe {
                    let to = y.add(column * self.stride).cast::<f32>();
                    to.write_unaligned(value);
                }
            };
            for (i, frequency) in self.frequencies.iter().enumerate() {
                let (sine, cosine) = (t * frequency).sin_cos();
                let (first, second) = if self.cosines_first {
                    (cosine, sine)
                } else {
                    (sine, cosine)
                };
                set(i, first as f32);
                set(half + i, second as f32);
            }
            if self.walk.row_len() > 2 * half {
                set(2 * half, 0.0);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "timestep_embedding"
    }
}
