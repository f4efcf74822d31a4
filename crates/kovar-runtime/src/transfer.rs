//! Where the bytes of each storage are valid as the nodes run, and the copies that follow.
//!
//! Every device that accesses a storage has a replica of it. A node makes the bytes that it writes
//! valid in its device's replica and stale in all others; bytes that it reads, or leaves as they
//! were between those that it writes, are copied in first where they are stale. So a range is
//! copied once for each destination and version, and a new version carries over the bytes that
//! its writer leaves alone.

use std::ops::Range;

use kovar_core::{NodeRef, ScalarId, StorageId, StorageKind, Value};

use crate::device::DeviceId;
use crate::ranges::RangeSet;

/// The first rows of a storage, as many as a run-time scalar says: those of a cache that are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many rows.
    pub rows: ScalarId,
    /// The byte of the storage behind the first row.
    pub first_end: usize,
    /// The bytes from one row to the next.
    pub stride: usize,
}

impl Limit {
    /// The limit of what a node reads of its operand `i`, if it has one.
    pub(crate) fn of(node: NodeRef<'_>, i: usize, value: &Value) -> Option<Self> {
        let (dim, rows) = node.op().valid_rows(i)?;
        let first = Value {
            layout: value.layout.slice(dim, 0..1)?,
            ..*value
        };
        let stride = *value.layout.strides().get(dim)?;
        let (len, bytes) = (value.dtype.block_len(), value.dtype.block_bytes());
        Some(Self {
            rows,
            first_end: first.byte_span().end,
            stride: stride / len * bytes,
        })
    }

    /// The byte behind the rows of a run with these scalars.
    pub fn end(&self, scalars: &[i32]) -> usize {
        let rows = scalars.get(self.rows.index());
        let rows = rows.map_or(0, |&rows| usize::try_from(rows).unwrap_or(0));
        match rows.checked_sub(1) {
            Some(more) => self
                .first_end
                .saturating_add(more.saturating_mul(self.stride)),
            None => 0,
        }
    }
}

/// Bytes that one device's replica of a storage takes over from another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The storage.
    pub storage: StorageId,
    /// The bytes, counted from the start of the storage.
    pub bytes: Range<usize>,
    /// The device that has them.
    pub from: DeviceId,
    /// The device that needs them.
    pub to: DeviceId,
    /// The segment behind which they are read; `None` before all segments.
    pub after: Option<usize>,
    /// The segment before which they are written; the number of segments behind all of them.
    pub before: usize,
    /// What of them a run needs, if not all.
    pub limit: Option<Limit>,
}

impl Copy {
    /// The bytes that cross in a run with these scalars, counted from the start of the storage.
    pub fn bytes_of(&self, scalars: &[i32]) -> Range<usize> {
        let end = self.limit.map_or(usize::MAX, |limit| limit.end(scalars));
        self.bytes.start..self.bytes.end.min(end).max(self.bytes.start)
    }
}

/// One device's replica of a storage.
#[derive(Debug)]
struct Holder {
    device: DeviceId,
    valid: RangeSet,
    /// Of which bytes those within a limit are valid.
    limited: Vec<(Limit, Range<usize>)>,
    /// The segments that made bytes valid; those that were valid before the run are not listed.
    made: Vec<(Range<usize>, usize)>,
}

impl Holder {
    /// The segment behind which `bytes` are as they are.
    fn ready(&self, bytes: &Range<usize>) -> Option<usize> {
        let overlapping = self
            .made
            .iter()
            .filter(|(made, _)| made.start < bytes.end && bytes.start < made.end);
        overlapping.map(|&(_, segment)| segment).max()
    }

    fn make(&mut self, bytes: Range<usize>, segment: usize) {
        self.made
            .retain(|(made, _)| made.start < bytes.start || made.end > bytes.end);
        self.made.push((bytes.clone(), segment));
        self.valid.insert(bytes);
    }
}

/// The replicas of a storage.
#[derive(Debug, Default)]
pub(crate) struct Holders(Vec<Holder>);

impl Holders {
    /// The replicas before the run: a state is whole at its home, an input wherever it is read.
    pub(crate) fn before(kind: StorageKind, bytes: usize, home: DeviceId) -> Self {
        let mut holders = Self::default();
        if kind == StorageKind::State {
            holders.get(home).valid.insert(0..bytes);
        }
        holders
    }

    fn get(&mut self, device: DeviceId) -> &mut Holder {
        let at = self.0.iter().position(|holder| holder.device == device);
        let at = at.unwrap_or_else(|| {
            self.0.push(Holder {
                device,
                valid: RangeSet::new(),
                limited: Vec::new(),
                made: Vec::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Makes `bytes`, those within `limit` if there is one, valid on `device` before `segment`, by
    /// `copies` of what is stale there. What is valid nowhere was never written and stays undefined.
    pub(crate) fn fetch(
        &mut self,
        storage: StorageId,
        (bytes, limit): (Range<usize>, Option<Limit>),
        device: DeviceId,
        segment: usize,
        copies: &mut Vec<Copy>,
    ) {
        if let [only] = self.0.as_slice()
            && only.device == device
        {
            return;
        }
        let holder = self.get(device);
        let covers = |(known, part): &(Limit, Range<usize>)| {
            Some(*known) == limit && part.start <= bytes.start && bytes.end <= part.end
        };
        let gaps = holder.valid.gaps(bytes.clone());
        if gaps.is_empty() || holder.limited.iter().any(covers) {
            return;
        }
        // What two limits share crosses whole.
        let mut others = holder.limited.iter();
        let limit = limit.filter(|_| others.all(|(_, part)| apart(part, &bytes)));
        if let Some(limit) = limit {
            holder.limited.push((limit, bytes.clone()));
        } else {
            self.widen(storage, &bytes, device, segment, copies);
        }
        for gap in self.get(device).valid.gaps(bytes) {
            let mut missing = RangeSet::new();
            missing.insert(gap);
            // The replica that had them first is nearly always the one that they were made in.
            while let Some(mut copy) = self.best(storage, &missing, device, segment) {
                missing.remove(copy.bytes.clone());
                copy.limit = limit;
                if limit.is_none() {
                    self.get(device).make(copy.bytes.clone(), segment);
                }
                push(copies, copy);
            }
        }
    }

    /// Takes the limits off the copies for the same segment that bring some of `bytes`.
    fn widen(
        &mut self,
        storage: StorageId,
        bytes: &Range<usize>,
        device: DeviceId,
        segment: usize,
        copies: &mut [Copy],
    ) {
        let for_segment = copies.iter_mut().rev();
        let for_segment = for_segment.take_while(|copy| copy.before == segment);
        for copy in for_segment.filter(|copy| copy.limit.is_some()) {
            if (copy.storage, copy.to) == (storage, device) && !apart(&copy.bytes, bytes) {
                copy.limit = None;
                self.get(device).make(copy.bytes.clone(), segment);
            }
        }
    }

    fn best(
        &self,
        storage: StorageId,
        missing: &RangeSet,
        to: DeviceId,
        before: usize,
    ) -> Option<Copy> {
        let others = self.0.iter().filter(|holder| holder.device != to);
        let ranges = missing.ranges().iter();
        let parts = ranges.flat_map(|range| {
            let others = others.clone();
            others.flat_map(|holder| {
                let parts = holder.valid.within(range.clone());
                parts.map(|bytes| Copy {
                    storage,
                    after: holder.ready(&bytes),
                    bytes,
                    from: holder.device,
                    to,
                    before,
                    limit: None,
                })
            })
        });
        parts.min_by_key(|copy| (copy.after, copy.from, copy.bytes.start))
    }

    /// Notes that a node of `segment`, which runs on `device`, overwrote `bytes`.
    pub(crate) fn write(&mut self, bytes: Range<usize>, device: DeviceId, segment: usize) {
        self.get(device).make(bytes.clone(), segment);
        for other in self.0.iter_mut().filter(|holder| holder.device != device) {
            other.valid.remove(bytes.clone());
            other.limited.retain(|(_, part)| apart(part, &bytes));
        }
    }
}

fn apart(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// Adds a copy, as a part of one for the same segment if the two touch.
fn push(copies: &mut Vec<Copy>, copy: Copy) {
    let same = |other: &Copy| {
        (
            other.storage,
            other.from,
            other.to,
            other.after,
            other.limit,
        ) == (copy.storage, copy.from, copy.to, copy.after, copy.limit)
    };
    let touch =
        |other: &Copy| other.bytes.end == copy.bytes.start || copy.bytes.end == other.bytes.start;
    let for_segment = copies.iter_mut().rev();
    let mut for_segment = for_segment.take_while(|other| other.before == copy.before);
    match for_segment.find(|other| same(other) && touch(other)) {
        Some(other) => {
            other.bytes.start = other.bytes.start.min(copy.bytes.start);
            other.bytes.end = other.bytes.end.max(copy.bytes.end);
        }
        None => copies.push(copy),
    }
}
