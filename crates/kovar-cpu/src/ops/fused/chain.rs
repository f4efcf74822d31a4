//! Elementwise nodes, each on the result of the one before.

use kovar_core::fusion::FusedNodes;

use super::super::Compiled;
use super::super::rows::Walk;
use super::steps::{Buffers, MAX_SLOTS, Piece, Slots, Step, is_step, run_steps};
use super::{Entry, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    takes: |group| group.iter().all(is_step) && 2 * group.nodes.len() < MAX_SLOTS,
    compile,
};

struct Chain {
    /// The first operand, then those of the steps.
    walk: Walk<MAX_SLOTS>,
    steps: Vec<Step>,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let malformed = || malformed(resolver, group);
    let mut slots = Slots::new();
    let mut steps = Vec::with_capacity(group.nodes.len());
    for (i, part) in group.linked().enumerate() {
        if i == 0 {
            slots.add(resolver.input(part.0, 0)?);
        }
        let handed_on = i + 1 < group.nodes.len();
        let step = Step::new(resolver, part, handed_on, &mut slots)?;
        steps.push(step.ok_or_else(malformed)?);
    }
    Ok(Box::new(Chain {
        walk: slots.walk(Walk::merged).ok_or_else(malformed)?,
        steps,
        name: group.fusion.name(),
    }))
}

impl Kernel for Chain {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        self.walk.pieces(run, &|starts, n| {
            let mut buffers = Buffers::new();
            let piece = Piece {
                kernels: run.vector,
                starts,
                forms: self.walk.forms,
                n,
            };
            // SAFETY: pieces are inside the operands and results, by `Kernel::run`'s contract
            // readable and writable. What is written lies over the same window of an operand or
            // apart, and a piece is read before it is written.
            unsafe {
                let x = piece.read(0, &mut buffers);
                run_steps(&self.steps, &piece, x, &mut buffers);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
