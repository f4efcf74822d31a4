//! The token before each token: y[0] = state, y[t] = x[t - 1].

use std::ops::Range;

use kovar_core::NodeRef;
use kovar_core::ops::Op;

use super::pieces::{MAX_ELEMENTS, fits_anywhere, per_word, slice};
use super::{Entry, F32, FLOATS, Planned, WORKGROUP, code, narrow, no_kernel};
use crate::kernel::{Access, Dispatch, Features, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::{Operand, View};

static SHIFT: Kernel = Kernel {
    file: "token_shift",
    entry: "token_shift",
    bindings: &[Access::Write, Access::Read, Access::Read, Access::Scalars],
};

static STATE: Kernel = Kernel {
    file: "token_state",
    entry: "token_state",
    bindings: &[Access::Write, Access::Read, Access::Scalars],
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 1 { F32 } else { FLOATS },
    result: |_| FLOATS,
    refuses: |_, _| None,
    plan,
};

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::TokenShift(op) = node.op() else {
        return Err(refused());
    };
    let shift = TokenShift {
        y: resolver.output(node)?,
        x: resolver.input(node, 0)?,
        state: resolver.update(node, 0)?,
    };
    let tokens = shift.x.layout.dims().first().copied().unwrap_or(0);
    let scalar = match op.n_valid {
        Some(id) => [1, id.index() as u32, tokens as u32, 0],
        None => [0, 0, tokens as u32, 0],
    };
    let (caps, mut all) = (resolver.shared.device.caps(), Vec::new());
    // The state is updated last, since the first result is the state as it was.
    for updates in [false, true] {
        shift
            .plan(caps, scalar, updates, &mut all)
            .ok_or_else(refused)?;
    }
    Ok(all)
}

/// All tokens, with a range of their elements.
struct TokenShift {
    y: Operand,
    x: Operand,
    state: Operand,
}

impl TokenShift {
    /// Appends the dispatches that write the result, or that update the state.
    fn plan(
        &self,
        caps: &Caps,
        scalar: [u32; 4],
        updates: bool,
        all: &mut Vec<Dispatch>,
    ) -> Option<()> {
        let [tokens, n] = **self.x.layout.dims() else {
            return None;
        };
        if tokens == 0 || n == 0 {
            return Some(());
        }
        let small = |operand: &Operand, len: usize| {
            let piece = slice(operand, 0, 0..len)?;
            Some(fits_anywhere(caps, &piece) && piece.layout.elements() <= MAX_ELEMENTS)
        };
        let mut chunk = tokens;
        while chunk > 1 && !(small(&self.x, chunk)? && small(&self.y, chunk)?) {
            chunk = chunk.div_ceil(2);
        }
        if n > 1 && !(small(&self.x, chunk)? && small(&self.y, chunk)? && small(&self.state, n)?) {
            for range in [0..n / 2, n / 2..n] {
                let piece = Self {
                    y: slice(&self.y, 1, range.clone())?,
                    x: slice(&self.x, 1, range.clone())?,
                    state: slice(&self.state, 0, range)?,
                };
                piece.plan(caps, scalar, updates, all)?;
            }
            return Some(());
        }
        for start in (0..tokens).step_by(chunk) {
            let end = (start + chunk).min(tokens);
            all.push(if updates {
                self.update(caps, scalar, start..end)?
            } else {
                self.shift(caps, scalar, start..end)?
            });
        }
        Some(())
    }

    fn shift(&self, caps: &Caps, scalar: [u32; 4], tokens: Range<usize>) -> Option<Dispatch> {
        // The first token of `x` that is read. None is if there is one token.
        let before = tokens.start.saturating_sub(1);
        let y = slice(&self.y, 0, tokens.clone())?;
        let x = slice(&self.x, 0, before..(tokens.end - 1).max(before + 1))?;
        let n = self.x.layout.dims().from_end(0);
        let view =
            |operand: &Operand| operand.view(operand.layout.strides(), caps.binding_alignment);
        let out = view(&y);
        let is_narrow = y.dtype.block_bytes() == 2;
        let n_elements = u32::try_from(n).ok()?;
        let per = per_word(&out, n_elements, if is_narrow { 2 } else { 1 });
        let row = |view: View| [view.offset, view.strides[2], view.strides[3], 0];
        let state = view(&self.state);
        let params = Params::new()
            .vec4([
                u32::try_from(tokens.len()).ok()?,
                n_elements,
                u32::try_from(tokens.start).ok()?,
                u32::try_from(before).ok()?,
            ])
            .vec4(row(out))
            .vec4(row(view(&x)))
            .vec4([state.offset, state.strides[3], 0, 0])
            .vec4(scalar);
        let invocations = tokens.len() * n / per as usize;
        Some(Dispatch {
            kernel: &SHIFT,
            features: narrow(is_narrow),
            constants: vec![
                ("OUT_DTYPE", code(y.dtype)),
                ("A_DTYPE", code(x.dtype)),
                ("PER", per),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: vec![y, x, self.state.clone()],
            workgroups: u32::try_from(invocations).ok()?.div_ceil(WORKGROUP),
        })
    }

    fn update(&self, caps: &Caps, scalar: [u32; 4], tokens: Range<usize>) -> Option<Dispatch> {
        let x = slice(&self.x, 0, tokens.clone())?;
        let n = self.x.layout.dims().from_end(0);
        let view =
            |operand: &Operand| operand.view(operand.layout.strides(), caps.binding_alignment);
        let (state, source) = (view(&self.state), view(&x));
        let params = Params::new()
            .vec4([
                u32::try_from(tokens.len()).ok()?,
                u32::try_from(n).ok()?,
                u32::try_from(tokens.start).ok()?,
                0,
            ])
            .vec4([state.offset, state.strides[3], 0, 0])
            .vec4([source.offset, source.strides[2], source.strides[3], 0])
            .vec4(scalar);
        Some(Dispatch {
            kernel: &STATE,
            features: Features::NONE,
            constants: vec![("A_DTYPE", code(x.dtype)), ("WORKGROUP", WORKGROUP)],
            params: params.finish(),
            operands: vec![self.state.clone(), x],
            workgroups: u32::try_from(n).ok()?.div_ceil(WORKGROUP),
        })
    }
}
