//! Multiplication by a constant.

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::rows::{PIECE, Walk};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, _| FLOATS,
    result: |_| FLOATS,
    compile,
};

struct Scale {
    walk: Walk<2>,
    factor: f32,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let factor = match node.op() {
        Op::Scale(op) => op.scale,
        _ => return Err(malformed(resolver, node, "x")),
    };
    let (x, y) = (resolver.input(node, 0)?, resolver.write(node)?);
    let walk = Walk::merged([&x, &y]).ok_or_else(|| malformed(resolver, node, "x"))?;
    Ok(Box::new(Scale { walk, factor }))
}

impl Kernel for Scale {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [x_form, y_form] = self.walk.forms;
        self.walk.pieces(run, &|[x, y], n| {
            let mut buffer = [0.0; PIECE];
            // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
            // writable; in place, a piece is read before it is written.
            unsafe {
                let x = x_form.read(run.vector, x, n, buffer.as_mut_ptr());
                let target = y_form.target(y, buffer.as_mut_ptr());
                (run.vector.scale)(x, target, n, self.factor);
                y_form.write(run.vector, target, n, y);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        "scale"
    }
}
