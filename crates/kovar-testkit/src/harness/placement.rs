//! Where a case's storages lie on the device, and the guard bands around them.

use std::ops::Range;
use std::sync::Arc;

use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, WeightUse};
use kovar_core::error::DeviceError;
use kovar_core::{Graph, HostBytes, StorageId, StorageKind};

use super::Operands;
use crate::cases::Setup;

/// Bytes of a guard band, at least.
const GUARD: usize = 256;

/// A storage in one of the buffers.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub storage: StorageId,
    /// The index of the buffer.
    pub buffer: usize,
    /// The storage's bytes in the buffer.
    pub range: Range<usize>,
}

/// A graph's storages on a device.
#[derive(Debug)]
pub(crate) struct Placement {
    memory: MemoryMap,
    buffers: Vec<Buffer>,
    /// What each buffer holds before a run.
    images: Vec<Vec<u8>>,
    regions: Vec<Region>,
}

impl Placement {
    /// Prepares the weights and allocates or imports everything else. `initial` holds the bytes of
    /// each storage by id.
    pub(crate) fn new(
        backend: &dyn Backend,
        setup: &Setup,
        initial: &[Vec<u8>],
        operands: Operands,
    ) -> Result<Self, DeviceError> {
        let graph = &setup.graph;
        let mut placement = Self {
            memory: MemoryMap::new(),
            buffers: Vec::new(),
            images: Vec::new(),
            regions: Vec::new(),
        };
        let alignment = backend.info().alignment.max(1);
        let mut arena = Vec::new();
        let nodes = graph.node_refs();
        let written: Vec<StorageId> = nodes
            .flat_map(|node| node.writes().map(|value| value.storage).collect::<Vec<_>>())
            .collect();
        for id in setup.used_storages() {
            let host = || host_bytes(&initial[id.index()], operands);
            match graph.storages()[id.index()].kind {
                StorageKind::Weight => {
                    let buffer = prepare(backend, graph, id, &host())?;
                    placement.memory.bind(id, Binding { buffer, offset: 0 });
                }
                _ if operands == Operands::Imported && !written.contains(&id) => {
                    let (buffer, _) = backend.import_host(&host())?;
                    placement.memory.bind(id, Binding { buffer, offset: 0 });
                }
                StorageKind::Temp | StorageKind::Output => arena.push(id),
                _ => placement.group(&[id], initial, alignment),
            }
        }
        if !arena.is_empty() {
            placement.group(&arena, initial, alignment);
        }
        for image in &placement.images {
            placement.buffers.push(backend.alloc(image.len())?);
        }
        for region in &placement.regions {
            let buffer = placement.buffers[region.buffer].clone();
            let offset = region.range.start;
            placement
                .memory
                .bind(region.storage, Binding { buffer, offset });
        }
        Ok(placement)
    }

    /// Lays storages out in one buffer, with a guard band before each and after the last.
    fn group(&mut self, storages: &[StorageId], initial: &[Vec<u8>], alignment: usize) {
        let mut image = Vec::new();
        for &storage in storages {
            let bytes = &initial[storage.index()];
            let start = (image.len() + GUARD).next_multiple_of(alignment);
            extend_with_guard(&mut image, start);
            image.extend_from_slice(bytes);
            self.regions.push(Region {
                storage,
                buffer: self.images.len(),
                range: start..image.len(),
            });
        }
        let end = (image.len() + GUARD).next_multiple_of(alignment);
        extend_with_guard(&mut image, end);
        self.images.push(image);
    }

    pub(crate) fn memory(&self) -> &MemoryMap {
        &self.memory
    }

    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub(super) fn images(&self) -> &[Vec<u8>] {
        &self.images
    }

    /// Puts every buffer into its state before a run.
    pub(crate) fn upload(&self, backend: &dyn Backend) -> Result<(), DeviceError> {
        for (buffer, image) in self.buffers.iter().zip(&self.images) {
            backend.queue().write(buffer, 0, image)?;
        }
        Ok(())
    }

    /// All bytes of every buffer.
    pub(super) fn download(&self, backend: &dyn Backend) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut all = Vec::new();
        for (buffer, image) in self.buffers.iter().zip(&self.images) {
            let mut bytes = vec![0; image.len()];
            backend.queue().read_into(buffer, 0, &mut bytes)?;
            all.push(bytes);
        }
        Ok(all)
    }
}

/// Appends guard bytes up to length `end`: a pattern without NaNs that depends on the position.
fn extend_with_guard(image: &mut Vec<u8>, end: usize) {
    for at in image.len()..end {
        image.push((at * 37 + 11) as u8 & 0x7b);
    }
}

/// Bytes in host memory, at an odd address if they are to be imported.
fn host_bytes(bytes: &[u8], operands: Operands) -> HostBytes {
    let whole = |bytes| HostBytes::new(Arc::new(bytes));
    if operands == Operands::Allocated {
        return whole(bytes.to_vec());
    }
    let mut padded: Vec<u8> = Vec::with_capacity(bytes.len() + 2);
    padded.resize(1 + (padded.as_ptr().addr() & 1), 0);
    let range = padded.len()..padded.len() + bytes.len();
    padded.extend_from_slice(bytes);
    let shared = whole(padded);
    shared.slice(range).unwrap_or(shared)
}

fn prepare(
    backend: &dyn Backend,
    graph: &Graph,
    id: StorageId,
    bytes: &HostBytes,
) -> Result<Buffer, DeviceError> {
    let uses = WeightUse::all(graph).remove(&id).unwrap_or_default();
    backend.prepare(&graph.storages()[id.index()], bytes, &uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_bytes_lie_at_odd_addresses() {
        for len in [0, 1, 7, 4096] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let host = host_bytes(&bytes, Operands::Imported);
            assert_eq!(host.as_slice(), bytes);
            assert_eq!(host.as_slice().as_ptr().addr() % 2, 1);
        }
    }
}
