//! Copies, casts and makes contiguous.

use kovar_core::NodeRef;

use super::rearrange::{self, Mode};
use super::unary::{CAST, of_kind};
use super::{Entry, FLOATS, Planned, cast, no_kernel};
use crate::program::Resolver;

pub(super) static ENTRY: Entry = Entry::plain(plan);

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let (out, x) = (resolver.output(node)?, resolver.input(node, 0)?);
    if out.dtype == x.dtype {
        return rearrange::plan(resolver, node, Mode::Copy);
    }
    if FLOATS.contains(&out.dtype) && FLOATS.contains(&x.dtype) {
        return of_kind(resolver, node, CAST, [0.0; 4]);
    }
    let caps = resolver.shared.device.caps();
    cast::plan(caps, &out, &x).ok_or_else(|| no_kernel(resolver.shared, node))
}
