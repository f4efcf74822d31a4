//! Group normalisation. Groups are cut into parts, so that few large groups keep all threads busy:
//! first the moments of every part are computed, then every part is normalised by the moments of
//! its group. The parts do not depend on the number of threads.

use std::mem::MaybeUninit;

use kovar_core::ops::Op;
use kovar_core::{DType, Dims, Layout, NodeRef, collapse};

use super::fused::norm;
use super::moments::Moments;
use super::rows::{GRAIN, PIECE, RowForm, Vector, Walk};
use super::{Compiled, Entry, FLOATS, fused, malformed, unary};
use crate::product::ProductError;
use crate::program::{Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

struct GroupNorm {
    /// `x` and the result, each as batches, channels and the merged other dims.
    walk: Walk<2>,
    channels: usize,
    /// Rows of the walk in a channel, and in a group.
    channel_rows: usize,
    group_rows: usize,
    weight: Option<Vector>,
    bias: Option<Vector>,
    eps: f32,
    /// A fused node after the norm: its function, and the dtype of the norm's result.
    activation: Option<(unary::Body, DType)>,
    name: &'static str,
}

/// A norm and an activation in one.
pub(super) static FUSED: fused::Entry = fused::Entry {
    takes: |group| {
        let mut nodes = group.iter();
        let (Some(norm), Some(activation), None) = (nodes.next(), nodes.next(), nodes.next())
        else {
            return false;
        };
        // With the same strides the rows, and so the sums, are those of the norm by itself.
        let [between, y] = [norm, activation].map(|node| node.output().layout);
        matches!(norm.op(), Op::GroupNorm(_))
            && unary::body_of(activation.op()).is_some()
            && !has_single_elements(between.dims())
            && between.strides() == y.strides()
            && group.kept == [false, true]
    },
    compile: |resolver, group| {
        let malformed = || fused::malformed(resolver, group);
        let mut nodes = group.iter();
        let (Some(norm), Some(activation)) = (nodes.next(), nodes.next()) else {
            return Err(malformed());
        };
        let body = unary::body_of(activation.op()).ok_or_else(malformed)?;
        let y = resolver.write(activation)?;
        let (name, between) = (group.fusion.name(), norm.output().dtype);
        compile_with(resolver, norm, y, Some((body, between)), name)
    },
};

/// Whether channels have one element each in a batch.
fn has_single_elements(dims: &Dims) -> bool {
    dims.iter().skip(2).all(|&size| size == 1)
}

/// The operands with their dims after the second merged.
fn merged<'a>(operands: [&Operand<'a>; 2]) -> Option<[Operand<'a>; 2]> {
    let mut spatial = Vec::new();
    for operand in operands {
        let layout = &operand.layout;
        let dims = Dims::new(layout.dims().get(2..)?)?;
        let strides = Dims::new(layout.strides().get(2..)?)?;
        spatial.push(Layout::strided(dims, strides, layout.offset())?);
    }
    let collapsed = collapse(&[spatial.first()?, spatial.get(1)?])?;
    let join = |operand: &Operand<'a>, strides: &Dims| {
        let outer = operand.layout;
        let sizes = [outer.dims().get(..2)?, &collapsed.dims].concat();
        let strides = [outer.strides().get(..2)?, strides].concat();
        let layout = Layout::strided(Dims::new(&sizes)?, Dims::new(&strides)?, outer.offset())?;
        Some(operand.with_layout(layout))
    };
    Some([
        join(operands[0], collapsed.strides.first()?)?,
        join(operands[1], collapsed.strides.get(1)?)?,
    ])
}

/// `[batch, groups, n]` for channels of one element: then groups are rows.
fn groups_as_rows<'a>(operand: &Operand<'a>, groups: usize) -> Option<Operand<'a>> {
    let layout = &operand.layout;
    let (&[batch, channels, ..], &[outer, stride, ..]) =
        (layout.dims().get(..)?, layout.strides().get(..)?)
    else {
        return None;
    };
    if !has_single_elements(layout.dims()) || !channels.is_multiple_of(groups) {
        return None;
    }
    let n = channels / groups;
    let dims = Dims::new(&[batch, groups, n])?;
    let strides = Dims::new(&[outer, stride.checked_mul(n)?, stride])?;
    Some(operand.with_layout(Layout::strided(dims, strides, layout.offset())?))
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let y = resolver.write(node)?;
    compile_with(resolver, node, y, None, node.op().name())
}

/// The norm of `node`, whose result goes to `y` after the activation.
fn compile_with(
    resolver: &Resolver<'_>,
    node: NodeRef<'_>,
    y: Operand<'_>,
    activation: Option<(unary::Body, DType)>,
    name: &'static str,
) -> Compiled {
    let (groups, eps) = match node.op() {
        Op::GroupNorm(op) => (op.groups.max(1), op.eps),
        _ => return Err(malformed(resolver, node, "x")),
    };
    let x = resolver.input(node, 0)?;
    let refuse = || malformed(resolver, node, "x");
    if let [Some(x), Some(y)] = [&x, &y].map(|operand| groups_as_rows(operand, groups)) {
        return norm::compile_rows(resolver, node, [x, y], groups, (norm::Kind::Layer, eps));
    }
    let [x, y] = merged([&x, &y]).ok_or_else(refuse)?;
    let channels = x.layout.dims().get(1).copied().ok_or_else(refuse)?;
    let middle = x.layout.dims().iter().rev().skip(1);
    let channel_rows: usize = middle.take(x.layout.dims().rank() - 3).product();
    Ok(Box::new(GroupNorm {
        walk: Walk::rows([&x, &y]).ok_or_else(refuse)?,
        channels,
        channel_rows,
        group_rows: channels / groups * channel_rows,
        weight: Vector::optional(resolver, node, 1)?,
        bias: Vector::optional(resolver, node, 2)?,
        eps,
        activation,
        name,
    }))
}

impl GroupNorm {
    fn n_groups(&self) -> usize {
        self.walk.n_rows().checked_div(self.group_rows).unwrap_or(0)
    }

    /// The number of pieces of a row, of pieces of a part, and of parts of a group.
    fn cut(&self) -> (usize, usize, usize) {
        let row_len = self.walk.row_len();
        let row_pieces = row_len.div_ceil(PIECE);
        let part_pieces = GRAIN / row_len.clamp(1, PIECE);
        let parts = (self.group_rows * row_pieces).div_ceil(part_pieces);
        (row_pieces, part_pieces, parts)
    }

    /// Calls `f` with the row, the first column and the length of each piece of a part.
    fn pieces(&self, part: usize, f: &mut dyn FnMut(usize, usize, usize)) {
        let row_len = self.walk.row_len();
        let (row_pieces, part_pieces, parts) = self.cut();
        let (group, first) = (part / parts, part % parts * part_pieces);
        let end = (first + part_pieces).min(self.group_rows * row_pieces);
        for piece in first..end {
            let column = piece % row_pieces * PIECE;
            let row = group * self.group_rows + piece / row_pieces;
            f(row, column, PIECE.min(row_len - column));
        }
    }

    /// The moments of a part.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the part exists.
    unsafe fn moments(&self, run: &Run<'_>, part: usize) -> Moments {
        let kernels = run.vector;
        let [form, _] = self.walk.forms;
        let mut buffer = [0.0; PIECE];
        let mut count = 0;
        self.pieces(part, &mut |_, _, n| count += n);
        let mut total = |of: &dyn Fn(*const f32, usize) -> (f32, f32)| {
            let mut sums = (0.0, 0.0);
            self.pieces(part, &mut |row, column, n| {
                let [x, _] = self.walk.row(row);
                // SAFETY: by this function's contract the piece is readable.
                let x = unsafe { form.read(kernels, form.at(x, column), n, buffer.as_mut_ptr()) };
                let (first, second) = of(x, n);
                sums.0 += f64::from(first);
                sums.1 += f64::from(second);
            });
            sums
        };
        // SAFETY: `total` gives pieces that are readable.
        let (sum, _) = total(&|x, n| unsafe { ((kernels.sum)(x, n), 0.0) });
        Moments::of(count, sum, |center| {
            // SAFETY: as above.
            total(&|x, n| unsafe { (kernels.row_deviations)(x, n, center) })
        })
    }

    /// Normalises a part by the moments of its group.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the part exists and no other thread accesses it meanwhile.
    unsafe fn normalize(&self, run: &Run<'_>, part: usize, moments: &Moments) {
        let kernels = run.vector;
        let [x_form, y_form] = self.walk.forms;
        let factor = moments.factor(self.eps);
        let mut buffer = [0.0; PIECE];
        let buffer = buffer.as_mut_ptr();
        let mut rounded = MaybeUninit::<[f32; PIECE]>::uninit();
        let rounded = rounded.as_mut_ptr().cast();
        self.pieces(part, &mut |row, column, n| {
            let channel = row / self.channel_rows % self.channels;
            // SAFETY: by this function's contract rows and factors are readable, and the result
            // writable; in place, a piece is read before it is written.
            unsafe {
                let of_channel = |factor: Option<Vector>, otherwise: f64| {
                    let element = |factor: Vector| f64::from(factor.element(kernels, channel));
                    factor.map_or(otherwise, element)
                };
                let factor = factor * of_channel(self.weight, 1.0);
                let shift = of_channel(self.bias, 0.0);
                let (center, factor, shift) = moments.center_scale(factor, shift);
                let [x, y] = self.walk.row(row);
                let x = x_form.read(kernels, x_form.at(x, column), n, buffer);
                let to = y_form.at(y, column);
                let target = y_form.target(to, buffer);
                (kernels.center_scale)(x, target, n, center, factor, shift);
                if let Some((body, between)) = self.activation {
                    // The activation sees the norm's result rounded to its dtype.
                    if between != DType::F32 {
                        let form = RowForm::plain(between);
                        form.write(kernels, target, n, rounded);
                        form.read_to(kernels, rounded, n, target);
                    }
                    body.row(kernels, target, target, n);
                }
                y_form.write(kernels, target, n, to);
            }
        });
    }
}

impl Kernel for GroupNorm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let elements = self.walk.n_rows() * self.walk.row_len();
        if elements == 0 {
            return Ok(());
        }
        let (_, _, parts) = self.cut();
        let n = self.n_groups() * parts;
        let grain = GRAIN.div_ceil(elements / n + 1);
        let all = || run.scratch.get().cast::<Moments>();
        run.pool.run_ranges(n, grain, &|range, _| {
            for part in range {
                // SAFETY: by `Kernel::run`'s contract; the scratch memory has a slot for each part,
                // which only this chunk writes.
                unsafe { all().add(part).write(self.moments(run, part)) };
            }
        });
        run.pool.run_ranges(n, grain, &|range, _| {
            let mut known = None;
            for part in range {
                let group = part / parts;
                let moments = match known {
                    Some((of, moments)) if of == group => moments,
                    _ => {
                        // SAFETY: every slot was written above and is not written again.
                        let parts =
                            unsafe { std::slice::from_raw_parts(all().add(group * parts), parts) };
                        Moments::joined(parts)
                    }
                };
                known = Some((group, moments));
                // SAFETY: by `Kernel::run`'s contract; no other chunk has this part.
                unsafe { self.normalize(run, part, &moments) };
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let (_, _, parts) = self.cut();
        self.n_groups() * parts * size_of::<Moments>()
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
