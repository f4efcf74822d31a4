//! Writes rows by index.

use kovar_core::backend::Reason;
use kovar_core::ops::dtypes::PLAIN;
use kovar_core::{Collapsed, Dims, Layout, NodeRef, collapse};

use super::pieces::{MAX_ELEMENTS, fits, per_word, slice};
use super::rearrange::unit;
use super::{Entry, FLOATS, I32, Planned, WORKGROUP, cast, code, narrow, no_kernel};
use crate::kernel::{Dispatch, Kernel, Params};
use crate::program::Resolver;
use crate::seam::Caps;
use crate::view::{Operand, four};

static KERNEL: Kernel = Kernel::new("set_rows", 2);

pub(super) static ENTRY: Entry = Entry {
    operands: |_, i| if i == 0 { PLAIN } else { I32 },
    result: |_| PLAIN,
    refuses: |_, node| refused(node),
    plan,
};

/// Refuses casts other than from [`FLOATS`] to floats.
fn refused(node: NodeRef<'_>) -> Option<Reason> {
    let (x, y) = (node.input(0)?.dtype, node.output().dtype);
    let known = x == y || (FLOATS.contains(&x) && y.is_float());
    (!known).then(|| Reason::DType {
        op: node.op().name(),
        operand: "destination",
        dtype: y,
    })
}

fn plan(resolver: &Resolver<'_>, node: NodeRef<'_>) -> Planned {
    let writes = Writes {
        out: resolver.output(node)?,
        first: 0,
        x: resolver.input(node, 0)?,
        ids: resolver.input(node, 1)?,
    };
    let mut dispatches = Vec::new();
    let planned = writes.plan(resolver.shared.device.caps(), &mut dispatches);
    planned.ok_or_else(|| no_kernel(resolver.shared, node))?;
    Ok(dispatches)
}

/// A write of `x` to the rows `ids` of a destination, of which `out` has those from `first` on.
#[derive(Clone)]
struct Writes {
    out: Operand,
    first: usize,
    x: Operand,
    ids: Operand,
}

/// The layout of a row.
fn inner(operand: &Operand) -> Option<Layout> {
    let layout = &operand.layout;
    let dims = Dims::new(layout.dims().get(1..)?)?;
    let strides = Dims::new(layout.strides().get(1..)?)?;
    Layout::strided(dims, strides, layout.offset())
}

impl Writes {
    fn plan(&self, caps: &Caps, all: &mut Vec<Dispatch>) -> Option<()> {
        if self.out.layout.elements() == 0 || self.x.layout.elements() == 0 {
            return Some(());
        }
        let collapsed = collapse(&[&inner(&self.out)?, &inner(&self.x)?])?;
        if collapsed.dims.rank() > 3 {
            return self.cut_rows(false, caps, all);
        }
        let (n, rows) = (
            *self.x.layout.dims().first()?,
            *self.out.layout.dims().first()?,
        );
        if !fits(caps, &self.x) || self.x.layout.elements() > MAX_ELEMENTS {
            if n == 1 {
                return self.cut_rows(true, caps, all);
            }
            for range in [0..n / 2, n / 2..n] {
                let piece = Self {
                    x: slice(&self.x, 0, range.clone())?,
                    ids: slice(&self.ids, 0, range)?,
                    ..self.clone()
                };
                piece.plan(caps, all)?;
            }
            return Some(());
        }
        if !fits(caps, &self.out) {
            if rows == 1 {
                return self.cut_rows(true, caps, all);
            }
            for range in [0..rows / 2, rows / 2..rows] {
                let piece = Self {
                    first: self.first + range.start,
                    out: slice(&self.out, 0, range)?,
                    ..self.clone()
                };
                piece.plan(caps, all)?;
            }
            return Some(());
        }
        all.push(self.dispatch(caps, &collapsed)?);
        Some(())
    }

    /// Cuts the rows along their outermost dimension, into halves or into single indices.
    fn cut_rows(&self, halves: bool, caps: &Caps, all: &mut Vec<Dispatch>) -> Option<()> {
        let dims = self.x.layout.dims();
        let dim = (1..dims.rank()).find(|&dim| dims[dim] > 1)?;
        let step = if halves { dims[dim].div_ceil(2) } else { 1 };
        for start in (0..dims[dim]).step_by(step) {
            let range = start..(start + step).min(dims[dim]);
            let piece = Self {
                out: slice(&self.out, dim, range.clone())?,
                x: slice(&self.x, dim, range)?,
                ..self.clone()
            };
            piece.plan(caps, all)?;
        }
        Some(())
    }

    fn dispatch(&self, caps: &Caps, collapsed: &Collapsed) -> Option<Dispatch> {
        let [out_strides, x_strides] = collapsed.strides.as_slice() else {
            return None;
        };
        // The dim of the rows, then three dims of a row.
        let row_dims = |first: usize, rest: &Dims, fill: u32| {
            let [_, rest @ ..] = four(rest, fill);
            let rest = rest.map(|size| size as usize);
            Dims::new(&[first, rest[0], rest[1], rest[2]])
        };
        let view = |operand: &Operand, strides: &Dims| {
            let first = *operand.layout.strides().first()?;
            Some(operand.view(&row_dims(first, strides, 0)?, caps.binding_alignment))
        };
        let out_view = view(&self.out, out_strides)?;
        let dims = row_dims(*self.x.layout.dims().first()?, &collapsed.dims, 1)?;
        let (shift, split) = unit(self.out.dtype)?;
        let elements = dims.elements()?;
        let dims = four(&dims, 1);
        let per = per_word(&out_view, dims[3], 1 << shift);
        let number = |n: usize| u32::try_from(n).ok();
        let ids = self
            .ids
            .view(self.ids.layout.strides(), caps.binding_alignment);
        let params = Params::new()
            .vec4(dims)
            .view(out_view)
            .view(view(&self.x, x_strides)?)
            .vec4([
                number(self.first)?,
                number(*self.out.layout.dims().first()?)?,
                ids.offset,
                ids.strides[3],
            ]);
        let invocations = (elements << split) / per as usize;
        Some(Dispatch {
            kernel: &KERNEL,
            features: narrow(shift > 0),
            constants: vec![
                ("CAST", u32::from(self.x.dtype != self.out.dtype)),
                ("A_DTYPE", code(self.x.dtype)),
                ("TO", cast::number(self.out.dtype)?),
                ("SHIFT", shift),
                ("SPLIT", split),
                ("PER", per),
                ("WORKGROUP", WORKGROUP),
            ],
            params: params.finish(),
            operands: vec![self.out.clone(), self.x.clone(), self.ids.clone()],
            workgroups: number(invocations)?.div_ceil(WORKGROUP),
        })
    }
}
