//! Fits a graph into the budgets of the devices.

use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use super::error::CompileError;
use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::placement::Placement;
use crate::place::{Inputs, PlaceError, Policy, RejectedPin};
use crate::plural::plural;
use crate::session::{MemoryUsage, OverBudget, SessionCore};

/// Runs the passes over `graph` so that every device keeps its budget.
///
/// A device that would hold more than its budget first tries the same nodes without fusion, which
/// makes storages live longer. If that does not help, it keeps as many of the first nodes as fit,
/// and the others that other devices can run move to those devices.
pub(super) fn fit_budgets(
    graph: &Graph,
    session: &SessionCore,
    policy: &Policy,
    usage: &MemoryUsage,
) -> Result<Passes, CompileError> {
    session.weights().check(graph)?;
    session.states().check(graph)?;
    let mut fit = Fit {
        graph,
        session,
        policy,
        unfused: Policy {
            fuse: false,
            ..policy.clone()
        },
        usage,
        cutoffs: vec![usize::MAX; session.devices.len()],
        searches: vec![0; session.devices.len()],
    };
    let mut passes = fit.search()?;
    check_states(graph, &passes, &session.devices)?;
    report_rejected_pins(&passes.placement, session, policy)?;
    passes.is_spilled = fit.cutoffs.iter().any(|&cutoff| cutoff != usize::MAX);
    Ok(passes)
}

/// Verifies that each state fits a buffer of its device.
fn check_states(
    graph: &Graph,
    passes: &Passes,
    devices: &[Arc<dyn Backend>],
) -> Result<(), PlaceError> {
    for (device, backend) in devices.numbered() {
        let (info, mut states) = (backend.info(), passes.states_on(graph, device));
        if let Some((name, bytes)) = states.find(|&(_, bytes)| bytes > info.max_buffer_bytes) {
            return Err(PlaceError::TooLarge {
                storage: name.to_owned(),
                bytes,
                device: info.id.clone(),
                max: info.max_buffer_bytes,
            });
        }
    }
    Ok(())
}

/// A search for the most nodes that each device can keep.
struct Fit<'f> {
    graph: &'f Graph,
    session: &'f SessionCore,
    policy: &'f Policy,
    /// The same policy without fusion.
    unfused: Policy,
    usage: &'f MemoryUsage,
    /// By device, the position of the first node that it gives to others.
    cutoffs: Vec<usize>,
    /// By device, how often its cutoff was searched for.
    searches: Vec<usize>,
}

impl Fit<'_> {
    fn search(&mut self) -> Result<Passes, CompileError> {
        // The same search as in an empty session, so that a graph that fitted once fits again.
        let nothing = MemoryUsage::new(self.session.devices.len());
        if let Ok(passes) = self.search_beside(&nothing, &nothing)
            && self.over_budget(&passes, self.usage).is_empty()
        {
            return Ok(passes);
        }
        self.cutoffs.fill(usize::MAX);
        self.searches.fill(0);
        self.search_beside(&self.usage.without_arenas(), self.usage)
    }

    /// Lowers cutoffs until no device exceeds its budget beside `usage`. The first search of a
    /// device's cutoff counts `least`, the second one `usage`; a third is an error.
    fn search_beside(
        &mut self,
        least: &MemoryUsage,
        usage: &MemoryUsage,
    ) -> Result<Passes, CompileError> {
        loop {
            let passes = self.run(self.policy)?;
            let over = self.over_budget(&passes, usage);
            let Some((device, excess)) = over.into_iter().next() else {
                return Ok(passes);
            };
            if self.policy.fuse {
                let unfused = self.run(&self.unfused)?;
                if self.over_budget(&unfused, usage).is_empty() {
                    return Ok(unfused);
                }
            }
            tracing::debug!("{excess}");
            let counted = match self.searches[device.index()] {
                0 => least,
                1 => usage,
                _ => return Err(excess.into()),
            };
            self.lower_cutoff(device, counted, passes.liveness.nodes().len())?;
        }
    }

    /// Lowers the cutoff of a device to the most nodes with which it keeps its budget.
    fn lower_cutoff(
        &mut self,
        device: DeviceId,
        usage: &MemoryUsage,
        n_nodes: usize,
    ) -> Result<(), CompileError> {
        let at = device.index();
        let (mut kept, mut too_many) = (0, self.cutoffs[at].min(n_nodes));
        while kept + 1 < too_many {
            self.cutoffs[at] = kept.midpoint(too_many);
            let over = self.over_budget(&self.run(self.policy)?, usage);
            if over.iter().all(|(other, _)| *other != device) {
                kept = self.cutoffs[at];
            } else {
                too_many = self.cutoffs[at];
            }
        }
        self.cutoffs[at] = kept;
        self.searches[at] += 1;
        Ok(())
    }

    fn run(&self, policy: &Policy) -> Result<Passes, PlaceError> {
        Passes::run(Inputs {
            graph: self.graph,
            devices: &self.session.devices,
            homes: &self.session.homes,
            policy,
            cutoffs: &self.cutoffs,
        })
    }

    fn over_budget(&self, passes: &Passes, usage: &MemoryUsage) -> Vec<(DeviceId, OverBudget)> {
        usage.over_budget(self.session, self.graph, passes)
    }
}

/// Reports the pins that cannot be followed: as an error if pins are strict, otherwise as a warning
/// for all storages for which they are rejected for the same reason, once for each session.
fn report_rejected_pins(
    placement: &Placement,
    session: &SessionCore,
    policy: &Policy,
) -> Result<(), PlaceError> {
    let all = placement.rejected_pins();
    if let Some(rejected) = all.first().filter(|_| policy.strict) {
        return Err(rejected.clone().into());
    }
    let alike = |a: &RejectedPin, b: &RejectedPin| {
        (&a.wanted, a.op, &a.cause) == (&b.wanted, b.op, &b.cause)
    };
    for (at, rejected) in all.iter().enumerate() {
        if all[..at].iter().any(|earlier| alike(earlier, rejected)) {
            continue;
        }
        let later = all[at + 1..].iter();
        let mut warning = rejected.to_string();
        match later.filter(|later| alike(later, rejected)).count() {
            0 => {}
            more => warning += &format!("; the same holds for {}", plural(more, "other storage")),
        }
        if session.is_first(&warning) {
            tracing::warn!("{warning}");
        }
    }
    Ok(())
}
