//! What a run must have left in memory.

use kovar_core::{NodeRef, StorageId, StorageKind, Value};

use super::Failure;
use super::placement::Placement;
use crate::cases::Setup;
use crate::limits::limits;
use crate::metrics::compare;
use crate::oracle::{Activations, Output, run_node};
use crate::tensor::{Elements, TensorData, read_value, unit_offsets, write_value};

/// Checks every byte of `after`, the buffers after a run, and returns the largest error.
pub(super) fn check(
    setup: &Setup,
    initial: &[Vec<u8>],
    placement: &Placement,
    after: &[Vec<u8>],
) -> Result<Error, Failure> {
    let graph = &setup.graph;
    let mut bytes = initial.to_vec();
    let mut written: Vec<Vec<bool>> = initial.iter().map(|b| vec![false; b.len()]).collect();
    let mut results: Vec<(NodeRef<'_>, Output, Option<Output>)> = Vec::new();
    for node in graph.node_ids().filter_map(|id| graph.node(id)) {
        let mut inputs = Vec::new();
        for value in node.inputs() {
            inputs.push(read_value(value, &bytes[value.storage.index()])?);
        }
        let plain = run_node(node, &inputs, &setup.scalars, Activations::Exact)?;
        let quantized = match limits(node).quantized {
            Some(_) => Some(run_node(
                node,
                &inputs,
                &setup.scalars,
                Activations::Quantized,
            )?),
            None => None,
        };
        let at = node.output().storage.index();
        let mask = plain.written.as_deref();
        write_value(node.output(), &plain.data, mask, &mut bytes[at])?;
        mark(node.output(), mask, &mut written[at]);
        // A later result over an earlier one is the one to be found.
        results.retain(|(earlier, ..)| !earlier.output().overlaps(node.output()));
        results.push((node, plain, quantized));
    }

    guards(setup, placement, after)?;
    rest(setup, placement, after, &written)?;
    let mut largest = Error::default();
    for (node, plain, quantized) in &results {
        let storage = found(placement, after, node.output().storage);
        let actual = read_value(node.output(), storage.unwrap_or_default())?;
        let error = held(*node, plain, quantized.as_ref(), &actual)?;
        largest.nmse = largest.nmse.max(error.nmse);
        largest.limit_share = largest.limit_share.max(error.limit_share);
    }
    Ok(largest)
}

/// The bytes of a storage among the buffers read back.
fn found<'a>(placement: &Placement, after: &'a [Vec<u8>], storage: StorageId) -> Option<&'a [u8]> {
    let mut regions = placement.regions().iter();
    let region = regions.find(|region| region.storage == storage)?;
    after.get(region.buffer)?.get(region.range.clone())
}

/// Marks the bytes of the elements that a node writes.
fn mark(value: &Value, elements: Option<&[bool]>, bytes: &mut [bool]) {
    let (len, unit) = (value.dtype.block_len(), value.dtype.block_bytes());
    for (i, start) in unit_offsets(value).into_iter().enumerate() {
        if elements.is_none_or(|elements| elements.get(i * len) == Some(&true)) {
            bytes[start..start + unit].fill(true);
        }
    }
}

/// Nothing outside of the storages may have changed.
fn guards(setup: &Setup, placement: &Placement, after: &[Vec<u8>]) -> Result<(), Failure> {
    for (buffer, (before, after)) in placement.images().iter().zip(after).enumerate() {
        let regions = placement.regions().iter();
        let regions: Vec<_> = regions.filter(|r| r.buffer == buffer).collect();
        for (at, (&before, &found)) in before.iter().zip(after).enumerate() {
            if before == found || regions.iter().any(|r| r.range.contains(&at)) {
                continue;
            }
            let distance = |range: &std::ops::Range<usize>| {
                range
                    .start
                    .saturating_sub(at)
                    .max((at + 1).saturating_sub(range.end))
            };
            let nearest = regions.iter().min_by_key(|r| distance(&r.range));
            let (storage, range) = match nearest {
                Some(region) => {
                    let storage = &setup.graph.storages()[region.storage.index()];
                    (storage.name.clone(), region.range.clone())
                }
                None => (String::new(), 0..0),
            };
            return Err(Failure::GuardBand {
                storage,
                bytes: range.len(),
                position: at as isize - range.start as isize,
                before,
                found,
            });
        }
    }
    Ok(())
}

/// Bytes of storages that no node writes must be as they were.
fn rest(
    setup: &Setup,
    placement: &Placement,
    after: &[Vec<u8>],
    written: &[Vec<bool>],
) -> Result<(), Failure> {
    for region in placement.regions() {
        let before = &placement.images()[region.buffer][region.range.clone()];
        let found = &after[region.buffer][region.range.clone()];
        let written = &written[region.storage.index()];
        let changed = (0..before.len()).find(|&at| before[at] != found[at] && !written[at]);
        let Some(position) = changed else { continue };
        let storage = &setup.graph.storages()[region.storage.index()];
        let (name, before, found) = (storage.name.clone(), before[position], found[position]);
        let only_read = storage.kind == StorageKind::Input || !written.contains(&true);
        return Err(if only_read {
            Failure::InputChanged {
                storage: name,
                position,
                before,
                found,
            }
        } else {
            Failure::Untouched {
                storage: name,
                position,
                before,
                found,
            }
        });
    }
    Ok(())
}

/// How far a result that is right is from the oracle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Error {
    /// The error to the exact oracle.
    pub(super) nmse: f64,
    /// The error over its limit, from 0 to 1.
    pub(super) limit_share: f64,
}

/// `error` over `limit`; 0 where there is no error, as limits may be 0 too.
fn share(error: f64, limit: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / limit }
}

/// The error of a result, if it is within the limits.
fn held(
    node: NodeRef<'_>,
    plain: &Output,
    quantized: Option<&Output>,
    actual: &TensorData,
) -> Result<Error, Failure> {
    let (op, limits) = (node.op().name(), limits(node));
    let mask = plain.written.as_deref();
    let against = |expected: &TensorData| {
        let (expected, actual) = (as_numbers(expected), as_numbers(actual));
        compare(node.output().dims(), &expected, &actual, mask)
    };
    let comparison = against(&plain.data);
    let nmse = comparison.nmse;
    if nmse <= limits.plain {
        let limit_share = share(nmse, limits.plain);
        return Ok(Error { nmse, limit_share });
    }
    let mut limit = limits.plain;
    let mut same_activations = None;
    if let (Some(bounds), Some(quantized)) = (limits.quantized, quantized) {
        let same = against(&quantized.data).nmse;
        if nmse <= bounds.plain && same <= bounds.same_activations {
            let plain = share(nmse, bounds.plain);
            let limit_share = plain.max(share(same, bounds.same_activations));
            return Ok(Error { nmse, limit_share });
        }
        same_activations = Some(same);
        limit = bounds.plain;
    }
    Err(Failure::Error {
        op,
        comparison: Box::new(comparison),
        limit,
        same_activations,
    })
}

fn as_numbers(data: &TensorData) -> Vec<f64> {
    match data.elements() {
        Elements::Float(values) => values.clone(),
        Elements::Int(values) => values.iter().map(|&v| v as f64).collect(),
    }
}

/// A second run must have left the same bytes as the first.
pub(super) fn same(
    setup: &Setup,
    placement: &Placement,
    first: &[Vec<u8>],
    second: &[Vec<u8>],
) -> Result<(), Failure> {
    guards(setup, placement, second)?;
    for region in placement.regions() {
        let first = &first[region.buffer][region.range.clone()];
        let second = &second[region.buffer][region.range.clone()];
        if let Some(position) = (0..first.len()).find(|&at| first[at] != second[at]) {
            let storage = &setup.graph.storages()[region.storage.index()];
            return Err(Failure::Replay {
                storage: storage.name.clone(),
                position,
                first: first[position],
                found: second[position],
            });
        }
    }
    Ok(())
}
