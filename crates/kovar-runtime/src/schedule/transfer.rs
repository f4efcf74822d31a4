//! Where the bytes of each storage are valid as the nodes run, and the copies that follow.
//!
//! Every device that accesses a storage has a replica of it. A node makes the bytes that it writes
//! valid in the replica of its device and stale in all others. Stale bytes that it reads are copied
//! in first, and so are stale bytes between those that it writes. So a range is copied once for
//! each destination and version, and a new version keeps the bytes that its writer does not write.

use std::ops::Range;

use kovar_core::{NodeRef, ScalarId, StorageId, StorageKind, Value};

use crate::device::DeviceId;
use crate::intervals::{ByteSet, Intervals};

/// The valid rows of a cache: the first rows of a storage, their number given by a run-time scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The scalar that gives the number of rows.
    pub rows: ScalarId,
    /// The byte of the storage after the first row.
    pub first_end: usize,
    /// The bytes from one row to the next.
    pub stride: usize,
}

impl Limit {
    /// The limit of the bytes that a node reads of its operand `i`, if there is one.
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

    /// The byte after the last valid row of a run with these scalars.
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

/// A copy of bytes from one device's replica of a storage to another's.
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
    /// The segment after which they are read; `None` if they are read before all segments.
    pub after: Option<usize>,
    /// The segment before which they are written; the number of segments if they are written last.
    pub before: usize,
    /// Which of them a run needs, if not all.
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
struct ReplicaBytes {
    device: DeviceId,
    valid: ByteSet,
    /// Ranges of which only the bytes within a limit are valid.
    limited: Vec<(Limit, Range<usize>)>,
    /// The segments that made bytes valid; bytes that were valid before the run have none.
    made: Intervals<usize>,
}

impl ReplicaBytes {
    fn make(&mut self, bytes: Range<usize>, segment: usize) {
        self.made.set(bytes.clone(), segment);
        self.valid.set(bytes, ());
    }
}

/// The replicas of a storage, with the bytes that are valid in each.
#[derive(Debug, Default)]
pub(crate) struct StorageReplicas(Vec<ReplicaBytes>);

impl StorageReplicas {
    /// The replicas before the run: a state is valid at its home, an input wherever it is read.
    pub(crate) fn before_run(kind: StorageKind, bytes: usize, home: DeviceId) -> Self {
        let mut replicas = Self::default();
        if kind == StorageKind::State {
            replicas.get(home).valid.set(0..bytes, ());
        }
        replicas
    }

    fn get(&mut self, device: DeviceId) -> &mut ReplicaBytes {
        let at = self.0.iter().position(|replica| replica.device == device);
        let at = at.unwrap_or_else(|| {
            self.0.push(ReplicaBytes {
                device,
                valid: ByteSet::default(),
                limited: Vec::new(),
                made: Intervals::default(),
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Makes `bytes` (only those within `limit`, if there is one) valid on `device` before
    /// `segment` by adding to `copies`. Bytes that are valid nowhere were never written and stay
    /// undefined.
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
        let replica = self.get(device);
        let covers = |(known, part): &(Limit, Range<usize>)| {
            Some(*known) == limit && part.start <= bytes.start && bytes.end <= part.end
        };
        let gaps = replica.valid.gaps(bytes.clone());
        if gaps.is_empty() || replica.limited.iter().any(covers) {
            return;
        }
        // Bytes that are needed within two different limits are copied without a limit.
        let mut others = replica.limited.iter();
        let limit = limit.filter(|_| others.all(|(_, part)| apart(part, &bytes)));
        if let Some(limit) = limit {
            replica.limited.push((limit, bytes.clone()));
        } else {
            self.widen(storage, &bytes, device, segment, copies);
        }
        for gap in self.get(device).valid.gaps(bytes) {
            let mut missing = ByteSet::default();
            missing.set(gap, ());
            // The replica that became valid first is nearly always where the bytes were computed.
            while let Some(mut copy) = self.best(storage, &missing, device, segment) {
                missing.clear(copy.bytes.clone());
                copy.limit = limit;
                if limit.is_none() {
                    self.get(device).make(copy.bytes.clone(), segment);
                }
                push(copies, copy);
            }
        }
    }

    /// Removes the limits of copies for the same segment that bring some of `bytes`.
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
        missing: &ByteSet,
        to: DeviceId,
        before: usize,
    ) -> Option<Copy> {
        let others = self.0.iter().filter(|replica| replica.device != to);
        let parts = missing.within(0..usize::MAX).flat_map(|(range, ())| {
            let others = others.clone();
            others.flat_map(move |replica| {
                let parts = replica.valid.within(range.clone());
                parts.map(move |(bytes, ())| Copy {
                    storage,
                    after: replica.made.within(bytes.clone()).map(|(_, at)| at).max(),
                    bytes,
                    from: replica.device,
                    to,
                    before,
                    limit: None,
                })
            })
        });
        parts.min_by_key(|copy| (copy.after, copy.from, copy.bytes.start))
    }

    /// Notes that a node of `segment` on `device` overwrote `bytes`.
    pub(crate) fn write(&mut self, bytes: Range<usize>, device: DeviceId, segment: usize) {
        self.get(device).make(bytes.clone(), segment);
        for other in self.0.iter_mut().filter(|replica| replica.device != device) {
            other.valid.clear(bytes.clone());
            other.limited.retain(|(_, part)| apart(part, &bytes));
        }
    }
}

fn apart(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// Adds a copy, merged with one for the same segment if the two touch.
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
