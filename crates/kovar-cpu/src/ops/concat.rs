//! Concatenation of operands along a dimension.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::elements::Move;
use super::{Compiled, Entry, PLAIN, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| PLAIN,
    result: |_| PLAIN,
    compile,
};

/// The copy of each operand to its window of the result.
struct Concat(Vec<Move>);

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let malformed = || malformed(resolver, node, "next");
    let Op::Concat(op) = node.op() else {
        return Err(malformed());
    };
    let y = resolver.write(node)?;
    let mut start = 0;
    let mut moves = Vec::with_capacity(node.n_inputs());
    for i in 0..node.n_inputs() {
        let x = resolver.input(node, i)?;
        let size = x.layout.dims().get(op.dim).copied().unwrap_or(0);
        let window = y.layout.slice(op.dim, start..start + size);
        let window = y.with_layout(window.ok_or_else(malformed)?);
        moves.push(Move::new(&x, &window).ok_or_else(malformed)?);
        start += size;
    }
    Ok(Box::new(Concat(moves)))
}

impl Kernel for Concat {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        for copy in &self.0 {
            // SAFETY: by this function's contract; the result overlaps no operand.
            unsafe { copy.run(run) };
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        "concat"
    }
}
