//! The stages of a fused kernel: elementwise nodes, run one after another on a piece of a row that
//! stays in a cache.

use std::mem::MaybeUninit;

use kovar_core::error::DeviceError;
use kovar_core::{DType, NodeRef};

use super::super::binary::RowFn;
use super::super::rows::{PIECE, RowForm, Walk, broadcast};
use super::super::{binary, glu, unary};
use crate::program::{Operand, Resolver};
use crate::vector::Kernels;

/// The most operands and results in memory that a group has.
pub(in super::super) const MAX_SLOTS: usize = 10;

/// The operands and results of a group that are in memory, all broadcast to the same dims.
pub(super) struct Slots<'a> {
    operands: Vec<Operand<'a>>,
}

impl<'a> Slots<'a> {
    pub(super) fn new() -> Self {
        Self {
            operands: Vec::with_capacity(MAX_SLOTS),
        }
    }

    /// Appends an operand and returns its slot.
    pub(super) fn add(&mut self, operand: Operand<'a>) -> usize {
        self.operands.push(operand);
        self.operands.len() - 1
    }

    /// All slots, walked together by `walk`; `None` if there are too many or the dims differ.
    pub(super) fn walk(
        &self,
        walk: fn([&Operand<'_>; MAX_SLOTS]) -> Option<Walk<MAX_SLOTS>>,
    ) -> Option<Walk<MAX_SLOTS>> {
        let last = self.operands.last()?;
        let mut slots = [last; MAX_SLOTS];
        for (slot, operand) in slots
            .get_mut(..self.operands.len())?
            .iter_mut()
            .zip(&self.operands)
        {
            *slot = operand;
        }
        Some(walk(slots)?.using(self.operands.len()))
    }
}

/// A piece of a row, by slot.
pub(super) struct Piece<'p> {
    pub(super) kernels: &'p Kernels,
    pub(super) starts: &'p [*mut u8],
    pub(super) forms: &'p [RowForm],
    pub(super) n: usize,
}

impl Piece<'_> {
    /// The elements of a slot as f32, in place or in the first buffer.
    ///
    /// # Safety
    /// The slot's elements are readable.
    pub(super) unsafe fn read(&self, slot: usize, buffers: &mut Buffers) -> *const f32 {
        let (form, start) = (self.forms[slot], self.starts[slot]);
        // SAFETY: by this function's contract; a buffer has room for a piece.
        unsafe { form.read(self.kernels, start, self.n, buffers.result()) }
    }
}

/// Room for a result and for another operand.
pub(super) struct Buffers(MaybeUninit<[[f32; PIECE]; 2]>);

impl Buffers {
    pub(super) fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    pub(super) fn result(&mut self) -> *mut f32 {
        self.0.as_mut_ptr().cast()
    }

    pub(super) fn other(&mut self) -> *mut f32 {
        self.result().wrapping_add(PIECE)
    }
}

/// The destination of a result: a slot, or only the next node.
pub(super) struct Outcome {
    dtype: DType,
    slot: Option<usize>,
    /// Whether there is a next node.
    handed_on: bool,
}

impl Outcome {
    pub(super) fn new<'a>(
        resolver: &Resolver<'a>,
        node: NodeRef<'_>,
        kept: bool,
        handed_on: bool,
        slots: &mut Slots<'a>,
    ) -> Result<Self, DeviceError> {
        let result = kept.then(|| resolver.write(node)).transpose()?;
        Ok(Self {
            dtype: node.output().dtype,
            slot: result.map(|result| slots.add(result)),
            handed_on,
        })
    }

    /// A result without a next node, in a slot.
    pub(super) fn last(dtype: DType, slot: usize) -> Self {
        Self {
            dtype,
            slot: Some(slot),
            handed_on: false,
        }
    }

    pub(super) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// Where the result is computed.
    pub(super) fn target(&self, piece: &Piece<'_>, buffers: &mut Buffers) -> *mut f32 {
        match self.slot {
            Some(slot) => piece.forms[slot].target(piece.starts[slot], buffers.result()),
            None => buffers.result(),
        }
    }

    /// Writes the result from its target to its slot, and returns it for the next node: rounded to
    /// its dtype.
    ///
    /// # Safety
    /// The target holds the result, and the slot's elements are writable.
    pub(super) unsafe fn settle(
        &self,
        piece: &Piece<'_>,
        target: *const f32,
        buffers: &mut Buffers,
    ) -> *const f32 {
        let rounds = self.handed_on && self.dtype != DType::F32;
        let (kernels, n) = (piece.kernels, piece.n);
        // SAFETY: by this function's contract. The operand in the second buffer is no longer
        // needed, and the buffer has room for a piece of any result dtype.
        unsafe {
            let (form, at) = match self.slot {
                Some(slot) => (piece.forms[slot], piece.starts[slot]),
                None if !rounds => return target,
                None => (RowForm::plain(self.dtype), buffers.other().cast()),
            };
            form.write(kernels, target, n, at);
            if rounds {
                form.read(kernels, at, n, buffers.result())
            } else {
                target
            }
        }
    }
}

enum Body {
    One(unary::Body),
    /// The function, the slot of the other operand, and whether the other operand comes first.
    Two(RowFn, usize, bool),
}

/// An elementwise node.
pub(super) struct Stage {
    body: Body,
    outcome: Outcome,
}

/// Whether a node can be a stage.
pub(super) fn is_stage(node: NodeRef<'_>) -> bool {
    let op = node.op();
    let two = binary::body_of(op).or(glu::body_of(op)).is_some();
    two || unary::body_of(op).is_some()
}

impl Stage {
    /// The stage of a node. Its operand `link`, or the first if `link` is `None`, is the result of
    /// the stage before. `None` for nodes that [`is_stage`] excludes.
    pub(super) fn new<'a>(
        resolver: &Resolver<'a>,
        (node, link, kept): (NodeRef<'_>, Option<usize>, bool),
        handed_on: bool,
        slots: &mut Slots<'a>,
    ) -> Result<Option<Self>, DeviceError> {
        let op = node.op();
        let two = binary::body_of(op).or(glu::body_of(op));
        let body = if let Some(f) = two {
            let swapped = link == Some(1);
            let other = resolver.input(node, usize::from(!swapped))?;
            let Some(other) = broadcast(&other, node.output().dims()) else {
                return Ok(None);
            };
            Body::Two(f(resolver.shared.vector), slots.add(other), swapped)
        } else if let Some(body) = unary::body_of(op) {
            Body::One(body)
        } else {
            return Ok(None);
        };
        let outcome = Outcome::new(resolver, node, kept, handed_on, slots)?;
        Ok(Some(Self { body, outcome }))
    }

    pub(super) fn slot(&self) -> Option<usize> {
        self.outcome.slot()
    }

    /// Runs the stage on `x`, which may be the first buffer, and returns the result, which may be
    /// the first buffer too.
    ///
    /// # Safety
    /// `x` and the slots that the stage reads are readable for the piece, and its own slot is
    /// writable; its own slot is the same as an operand or apart from it.
    unsafe fn run(&self, piece: &Piece<'_>, x: *const f32, buffers: &mut Buffers) -> *const f32 {
        let (kernels, n) = (piece.kernels, piece.n);
        let target = self.outcome.target(piece, buffers);
        // SAFETY: by this function's contract.
        unsafe {
            match self.body {
                Body::One(body) => body.row(kernels, x, target, n),
                Body::Two(f, slot, swapped) => {
                    let (form, start) = (piece.forms[slot], piece.starts[slot]);
                    let other = form.read(kernels, start, n, buffers.other());
                    let (a, b) = if swapped { (other, x) } else { (x, other) };
                    f(a, b, target, n);
                }
            }
            self.outcome.settle(piece, target, buffers)
        }
    }
}

/// Runs stages one after another; `x` and the result are as in [`Stage::run`].
///
/// # Safety
/// As [`Stage::run`], for each stage.
pub(super) unsafe fn run_stages(
    stages: &[Stage],
    piece: &Piece<'_>,
    mut x: *const f32,
    buffers: &mut Buffers,
) -> *const f32 {
    for stage in stages {
        // SAFETY: by this function's contract.
        x = unsafe { stage.run(piece, x, buffers) };
    }
    x
}
