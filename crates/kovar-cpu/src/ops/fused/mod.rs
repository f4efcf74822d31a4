//! Kernels that run a group of fused nodes. [`fuses`] and [`compile`] read the same table; the
//! numbers are those of the nodes' own kernels, bit for bit.

mod chain;
mod norm;
mod rope_set_rows;
mod steps;

use kovar_core::backend::{Reason, Support};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;

use super::{Compiled, group_norm};
use crate::program::Resolver;

/// A row of the table.
pub(super) struct Entry {
    /// Whether the kernel runs a group, of which each node has a kernel by itself.
    pub(super) takes: fn(&FusedNodes<'_>) -> bool,
    /// Makes the kernel of a group that it takes.
    pub(super) compile: fn(&Resolver<'_>, &FusedNodes<'_>) -> Compiled,
}

/// The table.
static ENTRIES: &[&Entry] = &[
    &chain::ENTRY,
    &norm::ENTRY,
    &group_norm::FUSED,
    &rope_set_rows::ENTRY,
];

fn entry(group: &FusedNodes<'_>) -> Option<&'static Entry> {
    let whole = group.iter().count() == group.kept.len() && group.kept.last() == Some(&true);
    let mut entries = ENTRIES.iter().copied();
    entries.find(|entry| whole && (entry.takes)(group))
}

/// Whether the table has a kernel for a group.
pub(crate) fn fuses(group: &FusedNodes<'_>) -> Support {
    let fusion = group.fusion.name();
    let mut nodes = group.iter().map(super::supports);
    match nodes.find(|support| *support != Support::Yes) {
        Some(refusal) => refusal,
        None if entry(group).is_some() => Support::Yes,
        None => Support::No(Reason::Fusion { fusion }),
    }
}

/// Makes the kernel of a group that the table has a kernel for.
pub(crate) fn compile(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> Compiled {
    let entry = entry(group).ok_or_else(|| malformed(resolver, group))?;
    (entry.compile)(resolver, group)
}

/// The error for groups that `takes` excludes.
pub(super) fn malformed(resolver: &Resolver<'_>, group: &FusedNodes<'_>) -> DeviceError {
    let fusion = group.fusion.name();
    resolver.shared.unsupported(Reason::Fusion { fusion })
}
