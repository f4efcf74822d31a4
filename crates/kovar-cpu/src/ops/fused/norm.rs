//! A norm of rows, with elementwise nodes before it (a residual) and behind it (a scale).

use kovar_core::fusion::FusedNodes;
use kovar_core::ops::Op;
use kovar_core::{NodeRef, error::DeviceError};

use super::super::Compiled;
use super::super::moments::Moments;
use super::super::rows::{PIECE, RowForm, Walk};
use super::steps::{Buffers, MAX_SLOTS, Outcome, Piece, Slots, Step, is_step, run_steps};
use super::{Entry, malformed};
use crate::product::ProductError;
use crate::program::{Address, Kernel, Resolver, Run};

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
    // The norm goes through its rows several times. What it works on is read again, or computed
    // again from operands that nothing was written over.
    let again = kept.last() == Some(&true) || !kept.contains(&true);
    again && others.all(|(_, node)| is_step(node)) && 2 * group.nodes.len() <= MAX_SLOTS
}

/// A row that all rows are multiplied by or that is added to them.
type Factor = Option<(Address, RowForm)>;

enum Kind {
    Rms,
    Layer,
}

struct Norm {
    /// The first operand, then those of the steps and the results.
    walk: Walk<MAX_SLOTS>,
    before: Vec<Step>,
    kind: Kind,
    weight: Factor,
    bias: Factor,
    eps: f32,
    outcome: Outcome,
    after: Vec<Step>,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let malformed = || malformed(resolver, group);
    let at = group.iter().position(is_norm).ok_or_else(malformed)?;
    let mut slots = Slots::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut norm = None;
    for (i, part) in group.linked().enumerate() {
        let (node, _, kept) = part;
        if i == 0 {
            slots.add(resolver.input(node, 0)?);
        }
        let handed_on = i + 1 < group.nodes.len();
        if i == at {
            let outcome = Outcome::new(resolver, node, kept, handed_on, &mut slots)?;
            norm = Some((node, outcome));
            continue;
        }
        let step = Step::new(resolver, part, handed_on, &mut slots)?;
        let steps = if i < at { &mut before } else { &mut after };
        steps.push(step.ok_or_else(malformed)?);
    }
    let (node, outcome) = norm.ok_or_else(malformed)?;
    let (kind, eps) = match node.op() {
        Op::RmsNorm(op) => (Kind::Rms, op.eps),
        Op::LayerNorm(op) => (Kind::Layer, op.eps),
        _ => return Err(malformed()),
    };
    let factor = |i| {
        let factor = (node.n_inputs() > i).then(|| resolver.input(node, i));
        let factor = factor.transpose()?;
        Ok::<_, DeviceError>(factor.map(|factor| (factor.start(), RowForm::of(&factor))))
    };
    Ok(Box::new(Norm {
        walk: slots.walk(Walk::rows).ok_or_else(malformed)?,
        before,
        kind,
        weight: factor(1)?,
        bias: factor(2)?,
        eps,
        outcome,
        after,
        name: group.fusion.name(),
    }))
}

/// A row on its way through the kernel.
struct Row<'r> {
    norm: &'r Norm,
    run: &'r Run<'r>,
    starts: [*mut u8; MAX_SLOTS],
}

impl<'r> Row<'r> {
    fn piece(&self, column: usize, n: usize) -> Piece<'r> {
        let forms = self.norm.walk.forms;
        let mut starts = self.starts;
        let used = starts.iter_mut().zip(&forms).take(self.norm.walk.used());
        for (start, form) in used {
            *start = form.at(*start, column);
        }
        Piece {
            kernels: self.run.vector,
            starts,
            forms,
            n,
        }
    }

    /// What the norm works on, as f32. The first time that a piece is asked for, the steps before
    /// the norm write their results.
    ///
    /// # Safety
    /// As [`Kernel::run`]; the piece is inside the row.
    unsafe fn operand(&self, piece: &Piece<'_>, first: bool, buffers: &mut Buffers) -> *const f32 {
        let before = &self.norm.before;
        // SAFETY: by this function's contract. Without a slot to read again, the steps write
        // nothing, and what they read is there until the norm's result is.
        unsafe {
            match before.last().and_then(Step::slot) {
                Some(slot) if !first => piece.read(slot, buffers),
                _ => {
                    let x = piece.read(0, buffers);
                    run_steps(before, piece, x, buffers)
                }
            }
        }
    }

    /// Adds up what `of` gives for each piece of the norm's operand.
    ///
    /// # Safety
    /// As [`operand`](Self::operand), for the whole row.
    unsafe fn total(&self, first: bool, of: &mut dyn FnMut(*const f32, usize)) {
        let mut buffers = Buffers::new();
        pieces(self.norm.walk.row_len(), &mut |column, n| {
            let piece = self.piece(column, n);
            // SAFETY: by this function's contract.
            let x = unsafe { self.operand(&piece, first, &mut buffers) };
            of(x, n);
        });
    }

    /// How the row is to be scaled; the steps before the norm have written their results then.
    ///
    /// # Safety
    /// As [`operand`](Self::operand), for the whole row.
    unsafe fn scaling(&self) -> Scaling {
        let (kernels, row_len) = (self.run.vector, self.norm.walk.row_len());
        match self.norm.kind {
            Kind::Rms => {
                let mut sum = 0.0;
                // SAFETY: by this function's contract; `total` gives readable pieces.
                unsafe { self.total(true, &mut |x, n| sum += (kernels.sum_squares)(x, n)) };
                Scaling::Rms(1.0 / (sum / row_len as f32 + self.norm.eps).sqrt())
            }
            Kind::Layer => {
                let mut sum = 0.0;
                // SAFETY: as above.
                unsafe { self.total(true, &mut |x, n| sum += f64::from((kernels.sum)(x, n))) };
                let moments = Moments::of(row_len, sum, |center| {
                    let mut sums = (0.0, 0.0);
                    // SAFETY: as above.
                    unsafe {
                        self.total(false, &mut |x, n| {
                            let (distances, squares) = (kernels.row_deviations)(x, n, center);
                            sums.0 += f64::from(distances);
                            sums.1 += f64::from(squares);
                        });
                    }
                    sums
                });
                let factor = moments.factor(self.norm.eps);
                let (center, factor, shift) = moments.center_scale(factor, 0.0);
                Scaling::Layer(center, factor, shift)
            }
        }
    }

    /// # Safety
    /// As [`Kernel::run`]; nobody else touches the row's results meanwhile.
    unsafe fn run(&self) {
        let (norm, kernels) = (self.norm, self.run.vector);
        // SAFETY: by this function's contract.
        let scaling = unsafe { self.scaling() };
        let mut buffers = Buffers::new();
        pieces(norm.walk.row_len(), &mut |column, n| {
            let piece = self.piece(column, n);
            let factor = |factor: Factor, buffers: &mut Buffers| {
                factor.map(|(start, form)| {
                    let at = form.at(start.get(), column);
                    // SAFETY: the piece is inside the factor, by this function's contract readable.
                    unsafe { form.read(kernels, at, n, buffers.other()) }
                })
            };
            // SAFETY: the piece is inside the rows, by this function's contract readable and
            // writable; in place, a piece is read before it is written.
            unsafe {
                let x = self.operand(&piece, false, &mut buffers);
                let target = norm.outcome.target(&piece, &mut buffers);
                let weight = factor(norm.weight, &mut buffers);
                match (scaling, weight) {
                    (Scaling::Rms(scale), Some(weight)) => {
                        (kernels.scale_mul)(x, weight, target, n, scale);
                    }
                    (Scaling::Rms(scale), None) => (kernels.scale)(x, target, n, scale),
                    (Scaling::Layer(center, scale, shift), weight) => {
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
                run_steps(&norm.after, &piece, y, &mut buffers);
            }
        });
    }
}

/// What a norm does to the elements of a row.
#[derive(Clone, Copy)]
enum Scaling {
    /// Multiplies by a factor.
    Rms(f32),
    /// Subtracts a center, multiplies by a factor and adds a shift.
    Layer(f32, f32, f32),
}

/// Calls `f` with the first column and the length of each piece of a row.
fn pieces(row_len: usize, f: &mut dyn FnMut(usize, usize)) {
    for column in (0..row_len).step_by(PIECE) {
        f(column, PIECE.min(row_len - column));
    }
}

impl Kernel for Norm {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        self.walk.each_row(run, &|_, starts, _| {
            let norm = self;
            // SAFETY: by `Kernel::run`'s contract; no other chunk has this row.
            unsafe { Row { norm, run, starts }.run() };
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
