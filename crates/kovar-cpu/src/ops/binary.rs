//! Elementwise operations on two operands.

use kovar_core::NodeRef;
use kovar_core::ops::{BinaryKind, Op};

use super::rows::{PIECE, Walk, broadcast};
use super::{Compiled, Entry, FLOATS, malformed};
use crate::product::ProductError;
use crate::program::{Kernel, Resolver, Run};
use crate::vector::Kernels;

pub(super) static ENTRY: Entry = Entry {
    operands: |op, _| if body_of(op).is_some() { FLOATS } else { &[] },
    result: |_| FLOATS,
    compile,
};

/// A kernel on two f32 rows.
pub(super) type RowFn = unsafe fn(*const f32, *const f32, *mut f32, usize);

/// An elementwise operation on two operands and its result.
pub(super) struct Elementwise {
    pub(super) walk: Walk<3>,
    pub(super) f: RowFn,
    pub(super) name: &'static str,
}

fn compile(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Compiled {
    let body = body_of(node.op()).ok_or_else(|| malformed(resolver, node, "a"))?;
    compile_with(resolver, node, body(resolver.shared.vector))
}

/// A kernel on two f32 rows, of a level's table.
pub(super) type Body = fn(&Kernels) -> RowFn;

pub(super) fn body_of(op: &Op) -> Option<Body> {
    let Op::Binary(op) = op else { return None };
    Some(match op.kind {
        BinaryKind::Add => |kernels| kernels.add,
        BinaryKind::Sub => |kernels| kernels.sub,
        BinaryKind::Mul => |kernels| kernels.mul,
        BinaryKind::Div => |kernels| kernels.div,
        _ => return None,
    })
}

/// The kernel of a node of two operands. The second may be broadcast.
pub(super) fn compile_with(resolver: &Resolver<'_>, node: NodeRef<'_>, f: RowFn) -> Compiled {
    let (a, b) = (resolver.input(node, 0)?, resolver.input(node, 1)?);
    let y = resolver.write(node)?;
    let walk = broadcast(&b, a.layout.dims()).and_then(|b| Walk::merged([&a, &b, &y]));
    Ok(Box::new(Elementwise {
        walk: walk.ok_or_else(|| malformed(resolver, node, node.op().operand_name(1)))?,
        f,
        name: node.op().name(),
    }))
}

impl Kernel for Elementwise {
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError> {
        let [a_form, b_form, y_form] = self.walk.forms;
        self.walk.pieces(run, &|[a, b, y], n| {
            let mut buffers = [[0.0; PIECE]; 2];
            let [a_buffer, b_buffer] = &mut buffers;
            // SAFETY: pieces are inside the operands, by `Kernel::run`'s contract readable and
            // writable; a result that shares an operand's window is read before it is written.
            unsafe {
                let a = a_form.read(run.vector, a, n, a_buffer.as_mut_ptr());
                let b = b_form.read(run.vector, b, n, b_buffer.as_mut_ptr());
                let target = y_form.target(y, a_buffer.as_mut_ptr());
                (self.f)(a, b, target, n);
                y_form.write(run.vector, target, n, y);
            }
        });
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
