//! Chains of elementwise nodes: each takes the result of the one before.

use kovar_core::fusion::FusedNodes;

use super::super::Compiled;
use super::super::rows::Walk;
use super::stages::{Buffers, MAX_SLOTS, Piece, Slots, Stage, is_stage, run_stages};
use super::{Entry, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    takes: |group| group.iter().all(is_stage) && 2 * group.nodes.len() < MAX_SLOTS,
    compile,
};

struct Chain {
    /// The first operand, then those of the stages.
    walk: Walk<MAX_SLOTS>,
    stages: Vec<Stage>,
    name: &'static str,
}

fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let malformed = || malformed(resolver, group);
    let mut slots = Slots::new();
    let mut stages = Vec::with_capacity(group.nodes.len());
    for (i, node) in group.linked().enumerate() {
        if i == 0 {
            slots.add(resolver.input(node.0, 0)?);
        }
        let handed_on = i + 1 < group.nodes.len();
        let stage = Stage::new(resolver, node, handed_on, &mut slots)?;
        stages.push(stage.ok_or_else(malformed)?);
    }
    Ok(Box::new(Chain {
        walk: slots.walk(Walk::merged).ok_or_else(malformed)?,
        stages,
        name: group.fusion.name(),
    }))
}

impl Kernel for Chain {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        self.walk.pieces(run, &|starts, n| {
            let mut buffers = Buffers::new();
            let piece = Piece {
                kernels: run.vector,
                starts: &starts,
                forms: &self.walk.forms,
                n,
            };
            // SAFETY: pieces are inside the operands and results, by `Kernel::run`'s contract
            // readable and writable. A result covers the same window as an operand or is apart from
            // it, and a piece is read before it is written.
            unsafe {
                let x = piece.read(0, &mut buffers);
                run_stages(&self.stages, &piece, x, &mut buffers);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
