//! Convolutions and transposed convolutions as products of the weights with patches of the image,
//! packed a panel at a time.
//!
//! Along an axis, the positions of a result fall into *phases*; the positions of a phase see the
//! same taps of the kernel. A convolution has one phase. A transposed convolution of stride `s` has
//! `s` phases, and each is a convolution of stride 1 with every `s`-th tap.

use std::ops::Range;

use kovar_core::ops::Op;
use kovar_core::{DType, Dims, Layout, NodeRef, collapse};

use super::blocked::{Block, Blocked, COLUMNS, Cut, Left, Size, multiply};
use super::rows::{GRAIN, IndexedRows, RowForm, Vector, four};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::buffer::ALIGN;
use crate::pool::ChunkPtr;
use crate::product::ProductError;
use crate::program::{Address, Kernel, Operand, Resolver, Run};

/// A tap of a kernel along an axis, as the positions of one phase see it.
struct Tap {
    /// The source of position `i` is `i * Phase::source_step + offset`.
    offset: isize,
    /// The positions whose source is inside the image.
    inside: Range<usize>,
}

/// Positions of the result that see the same taps.
struct Phase {
    /// Position `i` is element `first + i * step` of the result.
    first: usize,
    step: usize,
    count: usize,
    source_step: usize,
    taps: Vec<Tap>,
}

impl Phase {
    fn push(&mut self, offset: isize, size: usize) {
        let step = self.source_step;
        let from = usize::try_from(-offset).unwrap_or(0).div_ceil(step);
        let last = (size as isize - 1).checked_sub(offset);
        let last = last.and_then(|last| usize::try_from(last).ok());
        let to = last.map_or(0, |last| last / step + 1).min(self.count);
        let from = from.min(to);
        let inside = from..to;
        self.taps.push(Tap { offset, inside });
    }
}

/// The attributes of an axis. The graph's checks exclude values for which positions overflow.
#[derive(Clone, Copy)]
struct Geometry {
    stride: usize,
    padding: usize,
    dilation: usize,
}

/// The phases of one axis, and for each tap of the kernel its phase and its place there.
struct Axis {
    phases: Vec<Phase>,
    places: Vec<Option<(usize, usize)>>,
    /// For each phase, the number of taps of the phases before it.
    before: Vec<usize>,
}

impl Axis {
    fn forward(geometry: Geometry, kernel: usize, size: usize, result: usize) -> Self {
        let mut phase = Phase {
            first: 0,
            step: 1,
            count: result,
            source_step: geometry.stride,
            taps: Vec::with_capacity(kernel),
        };
        for tap in 0..kernel {
            let offset = (tap * geometry.dilation) as isize - geometry.padding as isize;
            phase.push(offset, size);
        }
        Self {
            phases: vec![phase],
            places: (0..kernel).map(|tap| Some((0, tap))).collect(),
            before: vec![0],
        }
    }

    fn transposed(geometry: Geometry, kernel: usize, size: usize, result: usize) -> Self {
        let stride = geometry.stride;
        let phase = |first: usize| Phase {
            first,
            step: stride,
            count: (result - first).div_ceil(stride),
            source_step: 1,
            taps: Vec::new(),
        };
        let mut phases: Vec<Phase> = (0..stride.min(result)).map(phase).collect();
        let mut places = Vec::with_capacity(kernel);
        for tap in 0..kernel {
            // Source `i` adds to element `i * stride + shift`.
            let shift = (tap * geometry.dilation) as isize - geometry.padding as isize;
            let index = shift.rem_euclid(stride as isize) as usize;
            places.push(phases.get_mut(index).map(|phase| {
                phase.push((index as isize - shift) / stride as isize, size);
                (index, phase.taps.len() - 1)
            }));
        }
        let mut sum = 0;
        let before = phases.iter().map(|phase| {
            let before = sum;
            sum += phase.taps.len();
            before
        });
        Self {
            before: before.collect(),
            phases,
            places,
        }
    }

    fn taps(&self) -> usize {
        self.phases.iter().map(|phase| phase.taps.len()).sum()
    }
}

/// The layout of the weights of one row of the product, which is one channel of the result.
#[derive(Clone, Copy, PartialEq)]
enum Weights {
    /// In the order of `k`, evenly spaced, as f32.
    InPlace,
    /// In the order of `k`, evenly spaced.
    Ordered,
    /// Any other layout: they are copied into the order of `k` first.
    Gathered,
}

struct Convolution {
    name: &'static str,
    /// By batch, channel and row.
    x: IndexedRows<3>,
    y: IndexedRows<3>,
    /// Whether each row of the result begins where the row before it ends.
    y_merges: bool,
    weights: Weights,
    weight: Address,
    /// The form of a row of the product, or of a row of a kernel if weights are gathered.
    weight_form: RowForm,
    /// Bytes between groups, channels of the result, channels of the image, rows of a kernel.
    weight_strides: [usize; 4],
    bias: Option<Vector>,
    groups: usize,
    /// Channels of a group, of the image and of the result.
    channels: [usize; 2],
    axes: [Axis; 2],
    batch: usize,
    n_threads: usize,
    cut: Cut,
}

/// The row of both operations in the kernel table.
pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

/// What the two operations have in common, and which of them it is.
struct Attributes {
    transposed: bool,
    axes: [Geometry; 2],
    groups: usize,
}

impl Attributes {
    fn of(op: &Op) -> Option<Self> {
        let (transposed, stride, padding, dilation, groups) = match op {
            Op::Conv2d(op) => (false, op.stride, op.padding, op.dilation, op.groups),
            Op::ConvTranspose2d(op) => (true, op.stride, op.padding, op.dilation, op.groups),
            _ => return None,
        };
        let axes = [0, 1].map(|i| Geometry {
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
        });
        Some(Self {
            transposed,
            axes,
            groups,
        })
    }
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let (x, weight) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let bias = Vector::optional(resolver, node, 2)?;
    let y = resolver.write(node)?;
    let n_threads = resolver.shared.pool.n_threads();
    let kernel = assemble(node, [&x, &weight, &y], n_threads);
    let kernel = kernel.ok_or_else(|| malformed(resolver, node, "weight"))?;
    Ok(Box::new(Convolution { bias, ..kernel }))
}

fn assemble(
    node: NodeRef<'_>,
    [x, weight, y]: [&Operand<'_>; 3],
    n_threads: usize,
) -> Option<Convolution> {
    let attributes = Attributes::of(node.op())?;
    let [batch, c_in, height, width] = four(x.layout.dims())?;
    let [_, c_out, oh, ow] = four(y.layout.dims())?;
    let [_, _, kh, kw] = four(weight.layout.dims())?;
    let groups = attributes.groups;
    let channels = [c_in.checked_div(groups)?, c_out.checked_div(groups)?];
    // Without input channels or results no tap is used, whatever the size of the kernel.
    let [kh, kw] = if channels[0] == 0 || y.layout.elements() == 0 {
        [0, 0]
    } else {
        [kh, kw]
    };
    let axis = |i: usize, kernel: usize, size: usize, result: usize| {
        let geometry = attributes.axes[i];
        match (attributes.transposed, y.layout.elements()) {
            (_, 0) | (false, _) => Axis::forward(geometry, kernel, size, result),
            (true, _) => Axis::transposed(geometry, kernel, size, result),
        }
    };
    let axes = [axis(0, kh, height, oh), axis(1, kw, width, ow)];
    let [first, second, row, column] = four(weight.layout.strides())?;
    let (weights, weight_form, weight_strides) = if attributes.transposed {
        let form = RowForm::of(weight);
        let strides = [channels[0] * first, second, first, row];
        (Weights::Gathered, form, strides)
    } else {
        let strides = [channels[1] * first, first, second, row];
        let kernel = Layout::strided(
            Dims::new(&weight.layout.dims()[1..])?,
            Dims::new(&[second, row, column])?,
            0,
        )?;
        let merged = collapse(&[&kernel])?;
        match (merged.dims.rank(), merged.strides.first()) {
            (0 | 1, Some(stride)) if stride.rank() == merged.dims.rank() => {
                let layout = Layout::strided(merged.dims, *stride, 0)?;
                let form = RowForm::of(&weight.with_layout(layout));
                let weights = if form.dtype() == DType::F32 {
                    Weights::InPlace
                } else {
                    Weights::Ordered
                };
                (weights, form, strides)
            }
            _ => (Weights::Gathered, RowForm::of(weight), strides),
        }
    };
    let y_row = y.layout.strides()[2];
    let mut convolution = Convolution {
        name: node.op().name(),
        x: IndexedRows::new(x)?,
        y: IndexedRows::new(y)?,
        y_merges: oh <= 1 || y_row == ow * RowForm::of(y).stride(),
        weights,
        weight: weight.start(),
        weight_form,
        weight_strides: weight_strides.map(|elements| weight.bytes(elements)),
        bias: None,
        groups,
        channels,
        axes,
        batch,
        n_threads,
        cut: Cut::new(0, Size::default(), n_threads),
    };
    if y.layout.elements() > 0 {
        let (products, size) = (convolution.products(), convolution.size(0));
        convolution.cut = Cut::new(products, size, n_threads);
    }
    Some(convolution)
}

/// A product of a convolution: a batch, a group, and a phase of each axis.
struct Product<'a> {
    batch: usize,
    group: usize,
    phases: [&'a Phase; 2],
    indices: [usize; 2],
}

impl Convolution {
    fn product(&self, product: usize) -> Product<'_> {
        let [rows, columns] = &self.axes;
        let (rest, column) = (
            product / columns.phases.len(),
            product % columns.phases.len(),
        );
        let (rest, row) = (rest / rows.phases.len(), rest % rows.phases.len());
        Product {
            batch: rest / self.groups,
            group: rest % self.groups,
            phases: [&rows.phases[row], &columns.phases[column]],
            indices: [row, column],
        }
    }

    /// Elements of the gathered weights.
    fn gathered(&self) -> usize {
        if self.weights != Weights::Gathered {
            return 0;
        }
        let taps = self.axes[0].taps().saturating_mul(self.axes[1].taps());
        let [inputs, outputs] = self.channels;
        let rows = outputs.saturating_mul(self.groups);
        taps.saturating_mul(rows).saturating_mul(inputs)
    }

    fn gathered_bytes(&self) -> usize {
        let bytes = self.gathered().saturating_mul(size_of::<f32>());
        bytes.next_multiple_of(ALIGN)
    }

    /// The first element of the gathered weights of a pair of phases. The weights of a channel of
    /// the result follow each other in the order of `k`.
    fn gathered_start(&self, [row, column]: [usize; 2]) -> usize {
        let [rows, columns] = &self.axes;
        let taps = rows.before[row] * columns.taps()
            + rows.phases[row].taps.len() * columns.before[column];
        taps * self.channels[0] * self.channels[1] * self.groups
    }

    /// Copies all weights into the order of `k` of their products.
    ///
    /// # Safety
    /// As [`Kernel::run`]; `to` has room for them.
    unsafe fn gather(&self, run: &Run<'_>, to: *mut f32) {
        const BUFFER: usize = 64;
        let [inputs, outputs] = self.channels;
        let [rows, columns] = &self.axes;
        let [group_bytes, output_bytes, input_bytes, row_bytes] = self.weight_strides;
        let per_row = inputs * rows.places.len() * columns.places.len();
        let to = ChunkPtr::new(to);
        let grain = GRAIN.div_ceil(per_row.max(1));
        run.pool
            .run_ranges(outputs * self.groups, grain, &|range, _| {
                for output in range {
                    let (group, channel) = (output / outputs, output % outputs);
                    let start = group * group_bytes + channel * output_bytes;
                    for input in 0..inputs {
                        for (u, row) in rows.places.iter().enumerate() {
                            let Some((row, row_tap)) = *row else { continue };
                            let kernel_row = start + input * input_bytes + u * row_bytes;
                            let kernel_row = self.weight.get().wrapping_add(kernel_row);
                            let taps = rows.phases[row].taps.len();
                            for (i, places) in columns.places.chunks(BUFFER).enumerate() {
                                let mut buffer = [0.0; BUFFER];
                                // SAFETY: the taps are inside the weight.
                                unsafe {
                                    let from = self.weight_form.at(kernel_row, i * BUFFER);
                                    let n = places.len();
                                    let buffer = buffer.as_mut_ptr();
                                    self.weight_form.read_to(run.vector, from, n, buffer);
                                }
                                for (value, place) in buffer.iter().zip(places) {
                                    let Some((column, tap)) = *place else {
                                        continue;
                                    };
                                    let wide = columns.phases[column].taps.len();
                                    let k = (input * taps + row_tap) * wide + tap;
                                    let at = self.gathered_start([row, column])
                                        + output * inputs * taps * wide
                                        + k;
                                    // SAFETY: each weight has a place of its own.
                                    unsafe { *to.get().add(at) = *value };
                                }
                            }
                        }
                    }
                }
            });
    }
}

impl Blocked for Convolution {
    fn products(&self) -> usize {
        let phases = self.axes.iter().map(|axis| axis.phases.len());
        self.batch * self.groups * phases.product::<usize>()
    }

    fn size(&self, product: usize) -> Size {
        let [rows, columns] = self.product(product).phases;
        Size {
            rows: self.channels[1],
            columns: rows.count * columns.count,
            k: self.channels[0] * rows.taps.len() * columns.taps.len(),
        }
    }

    unsafe fn start(&self, run: &Run<'_>, product: usize, row: usize) -> f32 {
        let channel = self.product(product).group * self.channels[1] + row;
        // SAFETY: the channel is inside the bias.
        let bias = |bias: Vector| unsafe { bias.element(run.vector, channel) };
        self.bias.map_or(0.0, bias)
    }

    unsafe fn left(&self, run: &Run<'_>, block: &Block, buffer: *mut f32) -> Left {
        let product = self.product(block.product);
        let (rows, k) = (&block.rows, &block.k);
        let [groups, outputs, ..] = self.weight_strides;
        let start = product.group * groups + rows.start * outputs;
        let start = self.weight.get().wrapping_add(start);
        let at = |row: usize| {
            self.weight_form
                .at(start.wrapping_add(row * outputs), k.start)
        };
        match self.weights {
            Weights::InPlace => Left {
                start: at(0).cast(),
                row_stride: outputs / size_of::<f32>(),
                k_stride: self.weight_form.stride(),
            },
            Weights::Ordered => {
                let size = (rows.len(), k.len());
                // SAFETY: the block is inside the weight and the buffer has room for it.
                unsafe { Left::copied(run, self.weight_form, size, at, buffer) }
            }
            Weights::Gathered => {
                let all = self.size(block.product).k;
                let output = product.group * self.channels[1] + rows.start;
                let at = self.gathered_start(product.indices) + output * all + k.start;
                Left {
                    start: run.scratch.get().cast::<f32>().wrapping_add(at),
                    row_stride: all,
                    k_stride: 1,
                }
            }
        }
    }

    unsafe fn right(&self, run: &Run<'_>, block: &Block, panel: *mut f32) {
        let product = self.product(block.product);
        let columns = &block.columns;
        let [down, across] = product.phases;
        let (down_taps, across_taps) = (down.taps.len(), across.taps.len());
        let form = self.x.form.every(across.source_step);
        let start = (columns.start / across.count, columns.start % across.count);
        for (i, k) in block.k.clone().enumerate() {
            let (rest, tap) = (k / across_taps, &across.taps[k % across_taps]);
            let (channel, row_tap) = (rest / down_taps, &down.taps[rest % down_taps]);
            let channel = product.group * self.channels[0] + channel;
            let (mut row, mut column) = start;
            let mut at = 0;
            while at < columns.len() {
                let n = (across.count - column).min(columns.len() - at);
                let end = column + n;
                // SAFETY: the panel has room for the columns; sources of the positions inside
                // are elements of `x`.
                unsafe {
                    let to = panel.add(i * COLUMNS + at);
                    if row_tap.inside.contains(&row) {
                        let from = tap.inside.start.clamp(column, end);
                        let until = tap.inside.end.clamp(from, end);
                        std::ptr::write_bytes(to, 0, from - column);
                        if until > from {
                            let source = |position: usize, step: usize, offset: isize| {
                                (position * step).wrapping_add_signed(offset)
                            };
                            let y = source(row, down.source_step, row_tap.offset);
                            let x = source(from, across.source_step, tap.offset);
                            let image_row = self.x.row([product.batch, channel, y]);
                            let first = self.x.form.at(image_row, x);
                            let to = to.add(from - column);
                            form.read_to(run.vector, first, until - from, to);
                        }
                        std::ptr::write_bytes(to.add(until - column), 0, end - until);
                    } else {
                        std::ptr::write_bytes(to, 0, n);
                    }
                }
                at += n;
                row += 1;
                column = 0;
            }
        }
    }

    unsafe fn store(&self, run: &Run<'_>, block: &Block, row: usize, sums: *mut f32) {
        let product = self.product(block.product);
        let columns = &block.columns;
        let [down, across] = product.phases;
        let channel = product.group * self.channels[1] + row;
        let form = self.y.form.every(across.step);
        let image_row = |row: usize| self.y.row([product.batch, channel, row]);
        if self.y_merges && across.step == 1 && down.step == 1 {
            let to = form.at(image_row(0), columns.start);
            // SAFETY: the columns are inside the result, whose rows continue each other.
            unsafe { form.write(run.vector, sums, columns.len(), to) };
            return;
        }
        let (mut row, mut column) = (columns.start / across.count, columns.start % across.count);
        let mut at = 0;
        while at < columns.len() {
            let n = (across.count - column).min(columns.len() - at);
            let to = image_row(down.first + row * down.step);
            let to = self.y.form.at(to, across.first + column * across.step);
            // SAFETY: the positions are inside the result.
            unsafe { form.write(run.vector, sums.add(at), n, to) };
            at += n;
            row += 1;
            column = 0;
        }
    }
}

impl Kernel for Convolution {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        // SAFETY: by this function's contract; the scratch memory has room for the gathered weights
        // and, after them, for the products.
        unsafe {
            let scratch = run.scratch.get();
            if self.weights == Weights::Gathered {
                self.gather(run, scratch.cast());
            }
            let scratch = scratch.wrapping_add(self.gathered_bytes());
            multiply(self, run, &self.cut, scratch);
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let blocks = Cut::scratch_bytes(self.n_threads);
        self.gathered_bytes().saturating_add(blocks)
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
