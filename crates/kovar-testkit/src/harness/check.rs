//! What a run must have left in memory.

use kovar_core::{NodeRef, StorageId, StorageKind, Value};

use super::Failure;
use super::placement::Placement;
use crate::cases::Setup;
use crate::limits::{Limits, limits, limits_of};
use crate::metrics::compare;
use crate::oracle::{Activations, run_node};
use crate::tensor::{Elements, TensorData, read_value, write_value};

/// What a node must have written to one value.
struct Expected<'g> {
    op: &'static str,
    value: &'g Value,
    data: TensorData,
    written: Option<Vec<bool>>,
    /// The result with 8-bit activations, of a product that may quantise them.
    quantized: Option<TensorData>,
    limits: Limits,
}

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
    let mut results: Vec<Expected<'_>> = Vec::new();
    for node in graph.node_refs() {
        for expected in expect(node, setup, &bytes)? {
            let (value, mask) = (expected.value, expected.written.as_deref());
            let at = value.storage.index();
            write_value(value, &expected.data, mask, &mut bytes[at])?;
            mark(value, mask, &mut written[at]);
            // A later result over an earlier one is the one to be found.
            results.retain(|earlier| !earlier.value.overlaps(value));
            results.push(expected);
        }
    }

    guards(setup, placement, after)?;
    rest(setup, placement, after, &written)?;
    let mut largest = Error::default();
    for expected in &results {
        let storage = found(placement, after, expected.value.storage);
        let actual = read_value(expected.value, storage.unwrap_or_default())?;
        let error = held(expected, &actual)?;
        largest.nmse = largest.nmse.max(error.nmse);
        largest.limit_share = largest.limit_share.max(error.limit_share);
    }
    Ok(largest)
}

/// What a node must write if the storages hold `bytes`.
fn expect<'g>(
    node: NodeRef<'g>,
    setup: &Setup,
    bytes: &[Vec<u8>],
) -> Result<Vec<Expected<'g>>, Failure> {
    let mut inputs = Vec::new();
    for value in node.inputs() {
        inputs.push(read_value(value, &bytes[value.storage.index()])?);
    }
    let run = |activations| run_node(node, &inputs, &setup.scalars, activations);
    let plain = run(Activations::Exact)?;
    let (op, limits) = (node.op().name(), limits(node));
    let mut all = vec![Expected {
        op,
        value: node.output(),
        data: plain.data,
        written: plain.written,
        quantized: match limits.quantized {
            Some(_) => Some(run(Activations::Quantized)?.data),
            None => None,
        },
        limits,
    }];
    for (value, data) in node.updates().zip(plain.updates) {
        all.push(Expected {
            op,
            value,
            data,
            written: None,
            quantized: None,
            limits: limits_of(node, value.dtype),
        });
    }
    Ok(all)
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
    for (i, start) in value.block_offsets().enumerate() {
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
fn held(expected: &Expected<'_>, actual: &TensorData) -> Result<Error, Failure> {
    let (op, limits) = (expected.op, expected.limits);
    let mask = expected.written.as_deref();
    let against = |data: &TensorData| {
        let (numbers, actual) = as_numbers(data, actual);
        compare(expected.value.dims(), &numbers, &actual, mask)
    };
    let comparison = against(&expected.data);
    let nmse = comparison.nmse;
    if nmse <= limits.plain {
        let limit_share = share(nmse, limits.plain);
        return Ok(Error { nmse, limit_share });
    }
    let mut limit = limits.plain;
    let mut same_activations = None;
    if let (Some(bounds), Some(quantized)) = (limits.quantized, &expected.quantized) {
        let same = against(quantized).nmse;
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

/// The elements of both sides as numbers, which differ where the elements do.
fn as_numbers(expected: &TensorData, actual: &TensorData) -> (Vec<f64>, Vec<f64>) {
    match (expected.elements(), actual.elements()) {
        (Elements::Int(expected), Elements::Int(actual)) => {
            let number = |(&e, &a): (&i64, &i64)| match (e as f64, a as f64) {
                (expected, same) if expected == same && e != a => (expected, same.next_up()),
                numbers => numbers,
            };
            expected.iter().zip(actual).map(number).unzip()
        }
        _ => (floats(expected), floats(actual)),
    }
}

fn floats(data: &TensorData) -> Vec<f64> {
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
