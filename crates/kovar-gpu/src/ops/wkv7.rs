//! The state recurrence of RWKV-7.

use kovar_core::NodeRef;
use kovar_core::backend::Reason;
use kovar_core::ops::Op;

use super::pieces::{fits, slice};
use super::rows::{dtypes, features, refuse_large};
use super::{Entry, F32, FLOATS, Planned, no_kernel};
use crate::kernel::{Access, Dispatch, Kernel, MAX_UNIFORM_SCALARS, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::Operand;

/// The operand index of the state.
const STATE: usize = 6;
/// Invocations of a workgroup.
const WORKGROUP: u32 = 64;
/// Columns of the state for each lane.
const COLUMNS: u32 = 16;
/// The largest head that fits workgroup memory.
const MAX_HEAD: u32 = 256;

/// Devices guarantee eight storage buffers only, so the scalars are in a uniform buffer.
const BINDINGS: &[Access] = &[
    Access::Write,
    Access::Read,
    Access::Read,
    Access::Read,
    Access::Read,
    Access::Read,
    Access::Read,
    Access::Write,
    Access::UniformScalars,
];

static KERNEL: Kernel = Kernel {
    file: "wkv7",
    entry: "wkv7",
    bindings: BINDINGS,
};

static WIDE: Kernel = Kernel {
    file: "wkv7",
    entry: "wkv7_wide",
    bindings: BINDINGS,
};

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == STATE { F32 } else { FLOATS },
    result: |_| FLOATS,
    refuses,
    plan,
};

fn refuses(caps: &Caps, node: NodeRef<'_>) -> Option<Reason> {
    let scalar = node.op().scalar();
    if scalar.is_some_and(|scalar| scalar.index() >= MAX_UNIFORM_SCALARS) {
        return Some(super::unknown(node));
    }
    refuse_large(caps, node, |i, layout| {
        let head = layout.slice(0, 0..1)?;
        if i == STATE {
            Some(head)
        } else {
            head.slice(1, 0..1)
        }
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let refused = || no_kernel(resolver.shared, node);
    let Op::Wkv7(op) = node.op() else {
        return Err(refused());
    };
    let mut operands = vec![resolver.output(node)?];
    for i in 0..STATE {
        operands.push(resolver.input(node, i)?);
    }
    operands.push(resolver.update(node, 0)?);
    let caps = resolver.shared.device.caps();
    let n_valid = op.n_valid.map_or(MAX_UNIFORM_SCALARS, |id| id.index());
    let mut dispatches = Vec::new();
    cut(caps, operands, n_valid as u32, 0, &mut dispatches).ok_or_else(refused)?;
    Ok(dispatches)
}

/// Plans the result, the vectors and the state, in the order of the bindings, from token `first`
/// on. They are cut along heads, then along tokens, until they fit bindings.
fn cut(
    caps: &Caps,
    operands: Vec<Operand>,
    n_valid: u32,
    first: usize,
    dispatches: &mut Vec<Dispatch>,
) -> Option<()> {
    let dims = *operands.first()?.layout.dims();
    if dims.elements()? == 0 {
        // Without tokens, states do not change.
        return Some(());
    }
    if operands.iter().all(|operand| fits(caps, operand)) {
        let first = u32::try_from(first).ok()?;
        dispatches.push(dispatch(caps, operands, n_valid, first)?);
        return Some(());
    }
    let by_heads = dims[1] > 1;
    let size = if by_heads { dims[1] } else { dims[0] };
    if size < 2 {
        return None;
    }
    let middle = size / 2;
    for range in [0..middle, middle..size] {
        let pieces = operands.iter().enumerate().map(|(i, operand)| {
            let is_state = i > STATE;
            if is_state && !by_heads {
                return Some(operand.clone());
            }
            let dim = usize::from(by_heads && !is_state);
            slice(operand, dim, range.clone())
        });
        let pieces = pieces.collect::<Option<Vec<_>>>()?;
        let first = if by_heads { first } else { first + range.start };
        cut(caps, pieces, n_valid, first, dispatches)?;
    }
    Some(())
}

fn dispatch(caps: &Caps, operands: Vec<Operand>, n_valid: u32, first: u32) -> Option<Dispatch> {
    let out = operands.first()?;
    let dims = out.layout.dims();
    let size = |i: usize| u32::try_from(dims.from_end(i)).ok();
    let (tokens, heads, n) = (size(2)?, size(1)?, size(0)?);
    let lanes = n.div_ceil(COLUMNS).next_power_of_two();
    let rows = WORKGROUP / lanes.min(WORKGROUP);
    let (kernel, head_workgroups, workgroups) = match n {
        0..=MAX_HEAD => {
            let head_workgroups = n.div_ceil(rows);
            (
                &KERNEL,
                head_workgroups,
                heads.checked_mul(head_workgroups)?,
            )
        }
        _ => (&WIDE, 1, heads.checked_mul(n)?.div_ceil(WORKGROUP)),
    };
    let params = Params::new().u32(tokens).u32(heads).u32(n);
    let params = params.u32(lanes.ilog2()).u32(head_workgroups);
    let mut params = params.u32(n_valid).u32(first);
    for operand in &operands {
        let strides = operand.layout.strides();
        params = params.view(operand.view(strides, caps.binding_alignment));
    }
    Some(Dispatch {
        kernel,
        features: features(out),
        constants: dtypes(&operands),
        params: params.finish(),
        operands,
        workgroups,
    })
}
