//! A norm of rows, by itself or with elementwise nodes before it (a residual) and after it (a
//! scale).

use kovar_core::NodeRef;
use kovar_core::fusion::FusedNodes;
use kovar_core::ops::Op;

use super::super::moments::Moments;
use super::super::rows::{Vector, Walk, row_pieces};
use super::super::{Compiled, malformed as malformed_node};
use super::stages::{Buffers, MAX_SLOTS, Outcome, Piece, Slots, Stage, is_stage, run_stages};
use super::{Entry, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Operand, Resolver, Run};

pub(super) static ENTRY: Entry = Entry { takes, compile };

fn is_norm(node: NodeRef<'_>) -> bool {
    matches!(node.op(), Op::RmsNorm(_) | Op::LayerNorm(_))
}

fn takes(group: &FusedNodes<'_>) -> bool {
    let Some(at) = group.iter().position(is_norm) else {
        return false;
    };
    let mut others = group.iter().enumerate().filter(|&(i, _)| i != at);
    let kept = group.kept.get(..at).unwrap_or_default();
    // The norm reads its rows several times: from the last kept result, or computed again from
    // operands that no result was written over.
    let again = kept.last() == Some(&true) || !kept.contains(&true);
    again && others.all(|(_, node)| is_stage(node)) && 2 * group.nodes.len() <= MAX_SLOTS
}

/// How a row is normalised.
pub(in super::super) enum Kind {
    Rms,
    Layer,
    L2,
}

impl Kind {
    /// The kind of a node's norm, and its epsilon.
    fn of(op: &Op) -> Option<(Self, f32)> {
        match op {
            Op::RmsNorm(op) => Some((Kind::Rms, op.eps)),
            Op::LayerNorm(op) => Some((Kind::Layer, op.eps)),
            Op::L2Norm(op) => Some((Kind::L2, op.eps)),
            _ => None,
        }
    }
}

struct Norm<const N: usize> {
    /// The first operand, then those of the stages and the results.
    walk: Walk<N>,
    before: Vec<Stage>,
    kind: Kind,
    /// All rows are multiplied by the weight, and the bias is added to them; both hold vectors for
    /// `factor_rows` consecutive rows.
    weight: Option<Vector>,
    bias: Option<Vector>,
    factor_rows: usize,
    eps: f32,
    outcome: Outcome,
    after: Vec<Stage>,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let malformed = || malformed(resolver, group);
    let at = group.iter().position(is_norm).ok_or_else(malformed)?;
    let mut slots = Slots::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut norm = None;
    for (i, linked) in group.linked().enumerate() {
        let (node, _, kept) = linked;
        if i == 0 {
            slots.add(resolver.input(node, 0)?);
        }
        let handed_on = i + 1 < group.nodes.len();
        if i == at {
            let outcome = Outcome::new(resolver, node, kept, handed_on, &mut slots)?;
            norm = Some((node, outcome));
            continue;
        }
        let stage = Stage::new(resolver, linked, handed_on, &mut slots)?;
        let stages = if i < at { &mut before } else { &mut after };
        stages.push(stage.ok_or_else(malformed)?);
    }
    let (node, outcome) = norm.ok_or_else(malformed)?;
    let (kind, eps) = Kind::of(node.op()).ok_or_else(malformed)?;
    Ok(Box::new(Norm {
        walk: slots.walk(Walk::rows).ok_or_else(malformed)?,
        before,
        kind,
        weight: Vector::optional(resolver, node, 1)?,
        bias: Vector::optional(resolver, node, 2)?,
        factor_rows: 1,
        eps,
        outcome,
        after,
        name: group.fusion.name(),
    }))
}

/// The kernel of a norm by itself.
pub(in super::super) fn compile_alone(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed_node(resolver, node, "x");
    let (kind, eps) = Kind::of(node.op()).ok_or_else(malformed)?;
    let operands = [resolver.input(node, 0)?, resolver.write(node)?];
    compile_rows(resolver, node, operands, 1, (kind, eps))
}

/// A norm of the rows of `x` to those of `y`. The weight and the bias, operands 1 and 2 of `node`,
/// hold vectors for `factor_rows` consecutive rows.
pub(in super::super) fn compile_rows<'a>(
    resolver: &Resolver<'a>,
    node: NodeRef<'_>,
    [x, y]: [Operand<'a>; 2],
    factor_rows: usize,
    (kind, eps): (Kind, f32),
) -> Compiled {
    let walk = Walk::rows([&x, &y]);
    Ok(Box::new(Norm {
        walk: walk.ok_or_else(|| malformed_node(resolver, node, "x"))?,
        before: Vec::new(),
        kind,
        weight: Vector::optional(resolver, node, 1)?,
        bias: Vector::optional(resolver, node, 2)?,
        factor_rows,
        eps,
        outcome: Outcome::last(y.dtype, 1),
        after: Vec::new(),
        name: node.op().name(),
    }))
}

/// A row that the kernel computes.
struct Row<'r, const N: usize> {
    norm: &'r Norm<N>,
    run: &'r Run<'r>,
    index: usize,
    starts: [*mut u8; N],
}

impl<const N: usize> Row<'_, N> {
    /// The addresses of a piece.
    fn starts(&self, column: usize) -> [*mut u8; N] {
        let walk = &self.norm.walk;
        let mut starts = self.starts;
        let used = starts.iter_mut().zip(&walk.forms).take(walk.used());
        for (start, form) in used {
            *start = form.at(*start, column);
        }
        starts
    }

    fn piece<'p>(&'p self, starts: &'p [*mut u8; N], n: usize) -> Piece<'p> {
        Piece {
            kernels: self.run.vector,
            starts,
            forms: &self.norm.walk.forms,
            n,
        }
    }

    /// A piece of the norm's operand as f32. If this is the `first` time, the stages before the
    /// norm write their results.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the piece is inside the row.
    unsafe fn operand(&self, piece: &Piece<'_>, first: bool, buffers: &mut Buffers) -> *const f32 {
        let before = &self.norm.before;
        // SAFETY: by this function's contract. Without a slot to read again, the stages write
        // nothing, and what they read is not overwritten before the norm's result is written.
        unsafe {
            match before.last().and_then(Stage::slot) {
                Some(slot) if !first => piece.read(slot, buffers),
                _ => {
                    let x = piece.read(0, buffers);
                    run_stages(before, piece, x, buffers)
                }
            }
        }
    }

    /// Calls `of` with each piece of the norm's operand.
    ///
    /// # Safety
    /// As [`operand`](Self::operand), for the whole row.
    unsafe fn each_piece(&self, first: bool, mut of: impl FnMut(*const f32, usize)) {
        let mut buffers = Buffers::new();
        for (column, n) in row_pieces(self.norm.walk.row_len()) {
            let starts = self.starts(column);
            let piece = self.piece(&starts, n);
            // SAFETY: by this function's contract.
            let x = unsafe { self.operand(&piece, first, &mut buffers) };
            of(x, n);
        }
    }

    /// How the row is scaled. The stages before the norm write their results.
    ///
    /// # Safety
    /// As [`operand`](Self::operand), for the whole row.
    unsafe fn scaling(&self) -> Scaling {
        let (kernels, row_len) = (self.run.vector, self.norm.walk.row_len());
        match self.norm.kind {
            Kind::Rms => {
                let mut sum = 0.0;
                // SAFETY: by this function's contract; `each_piece` gives readable pieces.
                unsafe { self.each_piece(true, |x, n| sum += (kernels.sum_squares)(x, n)) };
                Scaling::Factor(1.0 / (sum / row_len as f32 + self.norm.eps).sqrt())
            }
            Kind::L2 => {
                let mut sum = 0.0;
                let mut add = |squares: f32| sum += f64::from(squares);
                // SAFETY: as above.
                unsafe { self.each_piece(true, |x, n| add((kernels.sum_squares)(x, n))) };
                Scaling::Factor((1.0 / sum.sqrt().max(f64::from(self.norm.eps))) as f32)
            }
            Kind::Layer => {
                let mut sum = 0.0;
                // SAFETY: as above.
                unsafe { self.each_piece(true, |x, n| sum += f64::from((kernels.sum)(x, n))) };
                let moments = Moments::of(row_len, sum, |center| {
                    let mut sums = (0.0, 0.0);
                    // SAFETY: as above.
                    unsafe {
                        self.each_piece(false, |x, n| {
                            let (distances, squares) = (kernels.row_deviations)(x, n, center);
                            sums.0 += f64::from(distances);
                            sums.1 += f64::from(squares);
                        });
                    }
                    sums
                });
                let factor = moments.factor(self.norm.eps);
                let (center, factor, shift) = moments.center_scale(factor, 0.0);
                Scaling::Affine(center, factor, shift)
            }
        }
    }

    /// # Safety
    /// As [`Kernel::run`]; no other thread accesses the row's results meanwhile.
    unsafe fn run(&self) {
        let (norm, kernels) = (self.norm, self.run.vector);
        // SAFETY: by this function's contract.
        let scaling = unsafe { self.scaling() };
        let row_len = norm.walk.row_len();
        let first = self.index % norm.factor_rows * row_len;
        let mut buffers = Buffers::new();
        for (column, n) in row_pieces(row_len) {
            let starts = self.starts(column);
            let piece = self.piece(&starts, n);
            let factor = |factor: Option<Vector>, buffers: &mut Buffers| {
                // SAFETY: the piece is inside the factor, by this function's contract readable.
                factor.map(|f| unsafe { f.read(kernels, first + column, n, buffers.other()) })
            };
            // SAFETY: the piece is inside the rows, by this function's contract readable and
            // writable; in place, a piece is read before it is written.
            unsafe {
                let x = self.operand(&piece, false, &mut buffers);
                let target = norm.outcome.target(&piece, &mut buffers);
                let weight = factor(norm.weight, &mut buffers);
                match (scaling, weight) {
                    (Scaling::Factor(scale), Some(weight)) => {
                        (kernels.scale_mul)(x, weight, target, n, scale);
                    }
                    (Scaling::Factor(scale), None) => (kernels.scale)(x, target, n, scale),
                    (Scaling::Affine(center, scale, shift), weight) => {
                        (kernels.center_scale)(x, target, n, center, scale, shift);
                        if let Some(weight) = weight {
                            (kernels.mul)(target, weight, target, n);
                        }
                    }
                }
                if let Some(bias) = factor(norm.bias, &mut buffers) {
                    (kernels.add)(target, bias, target, n);
                }
                let y = norm.outcome.settle(&piece, target, &mut buffers);
                run_stages(&norm.after, &piece, y, &mut buffers);
            }
        }
    }
}

/// What a norm does to the elements of a row.
#[derive(Clone, Copy)]
enum Scaling {
    /// Multiplies by a factor.
    Factor(f32),
    /// Subtracts a center, multiplies by a factor and adds a shift.
    Affine(f32, f32, f32),
}

impl<const N: usize> Kernel for Norm<N> {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        self.walk.each_row(run, &|index, starts, _| {
            let norm = self;
            let row = Row {
                norm,
                run,
                index,
                starts,
            };
            // SAFETY: by `Kernel::run`'s contract; no other chunk has this row.
            unsafe { row.run() };
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
