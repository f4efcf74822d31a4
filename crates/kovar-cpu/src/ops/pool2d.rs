//! Pooling over two dimensions.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, PoolKind};

use super::rows::{GRAIN, IndexedRows, PIECE, four};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

/// A window that slides along an axis.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
}

impl Axis {
    /// The elements of the image that the window at position `i` covers.
    fn covered(self, i: usize) -> std::ops::Range<usize> {
        let start = i * self.stride;
        let from = start.saturating_sub(self.padding);
        from..(start + self.kernel)
            .saturating_sub(self.padding)
            .min(self.size)
    }

    /// The positions of `0..count` whose tap `tap` falls into the image.
    fn positions(self, tap: usize, count: usize) -> std::ops::Range<usize> {
        let from = self.padding.saturating_sub(tap).div_ceil(self.stride);
        let to = (self.size + self.padding)
            .saturating_sub(tap)
            .div_ceil(self.stride)
            .min(count);
        from.min(to)..to
    }
}

struct Pool2d {
    /// By batch, channel and row.
    x: IndexedRows<3>,
    y: IndexedRows<3>,
    kind: PoolKind,
    rows: Axis,
    columns: Axis,
    /// `[batch, channels, rows, columns]` of the result.
    dims: [usize; 4],
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let make = || {
        let Op::Pool2d(op) = node.op() else {
            return None;
        };
        let [_, _, height, width] = four(x.layout.dims())?;
        let axis = |i: usize, size: usize| Axis {
            size,
            kernel: op.kernel[i],
            stride: op.stride[i],
            padding: op.padding[i],
        };
        Some(Pool2d {
            x: IndexedRows::new(&x)?,
            y: IndexedRows::new(&y)?,
            kind: op.kind,
            rows: axis(0, height),
            columns: axis(1, width),
            dims: four(y.layout.dims())?,
        })
    };
    let kernel = make().ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(kernel))
}

impl Pool2d {
    /// Computes the columns of a row of the result from `first` on: as many as `sums` has elements.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn piece(
        &self,
        run: &Run<'_>,
        [batch, channel, row]: [usize; 3],
        first: usize,
        sums: &mut [f32],
    ) {
        let columns = self.columns;
        let end = first + sums.len();
        let form = self.x.form.every(columns.stride);
        sums.fill(match self.kind {
            PoolKind::Max => f32::NEG_INFINITY,
            PoolKind::Average { .. } => 0.0,
        });
        // Taps that fall into the image for at least one of the positions.
        let from = columns.padding.saturating_sub((end - 1) * columns.stride);
        let reach = (columns.size + columns.padding).saturating_sub(first * columns.stride);
        let taps = from..columns.kernel.min(reach);
        let covered = self.rows.covered(row);
        for source in covered.clone() {
            let source = self.x.row([batch, channel, source]);
            for tap in taps.clone() {
                let inside = columns.positions(tap, end);
                let from = inside.start.max(first);
                let Some(n) = inside.end.checked_sub(from).filter(|&n| n > 0) else {
                    continue;
                };
                let column = from * columns.stride + tap - columns.padding;
                let mut buffer = [0.0; PIECE];
                // SAFETY: the sources of the positions are elements of the row; there are at most
                // `PIECE`.
                let values = unsafe {
                    let at = self.x.form.at(source, column);
                    form.read_to(run.vector, at, n, buffer.as_mut_ptr());
                    &buffer[..n]
                };
                let sums = sums[from - first..].iter_mut().zip(values);
                match self.kind {
                    PoolKind::Max => {
                        sums.for_each(|(sum, &value)| {
                            if value > *sum || value.is_nan() {
                                *sum = value;
                            }
                        });
                    }
                    PoolKind::Average { .. } => sums.for_each(|(sum, &value)| *sum += value),
                }
            }
        }
        match self.kind {
            PoolKind::Max => {}
            PoolKind::Average {
                count_include_pad: true,
            } => {
                let count = self.rows.kernel as f32 * columns.kernel as f32;
                sums.iter_mut().for_each(|sum| *sum /= count);
            }
            PoolKind::Average {
                count_include_pad: false,
            } => {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let across = columns.covered(first + i).len();
                    *sum /= (covered.len() * across) as f32;
                }
            }
        }
    }
}

impl Kernel for Pool2d {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [batches, channels, height, width] = self.dims;
        let covered = self.rows.kernel.min(self.rows.size);
        let work = width.saturating_mul(covered).max(1);
        let rows = batches * channels * height;
        run.pool.run_ranges(rows, GRAIN.div_ceil(work), &|rows, _| {
            for index in rows {
                let (plane, row) = (index / height, index % height);
                let (batch, channel) = (plane / channels, plane % channels);
                let to = self.y.row([batch, channel, row]);
                for first in (0..width).step_by(PIECE) {
                    let mut buffer = [0.0; PIECE];
                    let sums = &mut buffer[..PIECE.min(width - first)];
                    // SAFETY: by this function's contract; the piece is inside the row.
                    unsafe {
                        self.piece(run, [batch, channel, row], first, sums);
                        let to = self.y.form.at(to, first);
                        self.y.form.write(run.vector, sums.as_ptr(), sums.len(), to);
                    }
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "pool2d"
    }
}
