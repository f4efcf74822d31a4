//! Resizing of images.

use kovar_core::NodeRef;
use kovar_core::ops::{Op, UpscaleMode};

use super::rows::{GRAIN, IndexedRows, PIECE, four};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::buffer::ALIGN;
use crate::pool::ChunkPtr;
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

/// The two source pixels of a pixel along an axis, and their weights.
#[derive(Clone, Copy)]
struct Neighbours {
    at: [usize; 2],
    shares: [f32; 2],
}

fn neighbours(mode: UpscaleMode, i: usize, n: usize, size: usize) -> Neighbours {
    let last = size - 1;
    let t = match mode {
        UpscaleMode::Nearest => {
            let at = (i as u128 * size as u128 / n as u128) as usize;
            return Neighbours {
                at: [at; 2],
                shares: [1.0, 0.0],
            };
        }
        UpscaleMode::Bilinear {
            align_corners: true,
        } => i as f64 * last as f64 / (n - 1).max(1) as f64,
        UpscaleMode::Bilinear {
            align_corners: false,
        } => ((i as f64 + 0.5) * size as f64 / n as f64 - 0.5).max(0.0),
    };
    let first = (t as usize).min(last);
    let share = t - first as f64;
    Neighbours {
        at: [first, (first + 1).min(last)],
        shares: [(1.0 - share) as f32, share as f32],
    }
}

struct Upscale {
    /// By batch, channel and row.
    x: IndexedRows<3>,
    y: IndexedRows<3>,
    nearest: bool,
    rows: Vec<Neighbours>,
    columns: Vec<Neighbours>,
    /// Columns of `x`.
    width: usize,
    planes: usize,
    channels: usize,
    n_threads: usize,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let make = || {
        let Op::Upscale(op) = node.op() else {
            return None;
        };
        let [batch, channels, height, width] = four(x.layout.dims())?;
        let planes = batch.checked_mul(channels)?;
        // Without elements no table is read, so none is made, however large the size is.
        let axis = |n: usize, size: usize| {
            let n = if planes == 0 || size == 0 { 0 } else { n };
            (0..n).map(|i| neighbours(op.mode, i, n, size)).collect()
        };
        Some(Upscale {
            x: IndexedRows::new(&x)?,
            y: IndexedRows::new(&y)?,
            nearest: op.mode == UpscaleMode::Nearest,
            rows: axis(op.size[0], height),
            columns: axis(op.size[1], width),
            width,
            planes,
            channels,
            n_threads: resolver.shared.pool.n_threads(),
        })
    };
    let kernel = make().ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(kernel))
}

impl Upscale {
    /// Bytes of two rows of `x`.
    fn worker_bytes(&self) -> usize {
        let row = self.width.saturating_mul(2 * size_of::<f32>());
        row.next_multiple_of(ALIGN)
    }
}

impl Kernel for Upscale {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let (height, width) = (self.rows.len(), self.columns.len());
        let scratch = ChunkPtr::new(run.scratch.get());
        let grain = GRAIN.div_ceil(width.max(1));
        run.pool
            .run_ranges(self.planes * height, grain, &|rows, worker| {
                for index in rows {
                    let (plane, row) = (index / height, index % height);
                    let (batch, channel) = (plane / self.channels, plane % self.channels);
                    let Neighbours { at, shares } = self.rows[row];
                    // SAFETY: each worker has its own region of the scratch memory, which holds two
                    // rows; the rows are inside `x`.
                    let [top, bottom] = unsafe {
                        let buffer = scratch.get().add(worker * self.worker_bytes());
                        let buffer = buffer.cast::<f32>();
                        let read = |row: usize, buffer: *mut f32| {
                            let from = self.x.row([batch, channel, row]);
                            let row = self.x.form.read(run.vector, from, self.width, buffer);
                            std::slice::from_raw_parts(row, self.width)
                        };
                        let top = read(at[0], buffer);
                        let same = self.nearest || at[1] == at[0];
                        let bottom = if same {
                            top
                        } else {
                            read(at[1], buffer.add(self.width))
                        };
                        [top, bottom]
                    };
                    let to = self.y.row([batch, channel, row]);
                    for (piece, columns) in self.columns.chunks(PIECE).enumerate() {
                        let mut buffer = [0.0; PIECE];
                        let results = buffer.iter_mut().zip(columns);
                        if self.nearest {
                            results.for_each(|(result, column)| *result = top[column.at[0]]);
                        } else {
                            results.for_each(|(result, column)| {
                                let ([left, right], [near, far]) = (column.at, column.shares);
                                let top = top[left] * near + top[right] * far;
                                let bottom = bottom[left] * near + bottom[right] * far;
                                *result = top * shares[0] + bottom * shares[1];
                            });
                        }
                        let form = self.y.form;
                        // SAFETY: the piece is inside the row.
                        unsafe {
                            let to = form.at(to, piece * PIECE);
                            form.write(run.vector, buffer.as_ptr(), columns.len(), to);
                        }
                    }
                }
            });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.n_threads.saturating_mul(self.worker_bytes())
    }

    fn name(&self) -> &'static str {
        "upscale"
    }
}
