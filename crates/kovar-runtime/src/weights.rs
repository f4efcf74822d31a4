//! The weights of a session.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Buffer, WeightUse};
use kovar_core::{DType, Dims, Graph, HostBytes, Layout, StorageId, StorageKind};

use crate::device::DeviceId;
use crate::error::{CompileError, SessionError};
use crate::segment::Segment;

/// A weight of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightInfo {
    /// Its name.
    pub name: String,
    /// Its dtype in the file.
    pub dtype: DType,
    /// Its dims, outermost first.
    pub dims: Dims,
    /// Its size in the file, in bytes.
    pub bytes: usize,
}

struct Weight {
    info: WeightInfo,
    host: HostBytes,
    /// The form that each device made of it.
    prepared: Vec<Option<Buffer>>,
}

/// Weights by name, in the order in which they were added.
#[derive(Default)]
pub(crate) struct Weights {
    weights: Vec<Weight>,
    by_name: HashMap<String, usize>,
}

impl Weights {
    pub(crate) fn add(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[usize],
        host: HostBytes,
        n_devices: usize,
    ) -> Result<(), SessionError> {
        if self.by_name.contains_key(name) {
            return Err(SessionError::DuplicateWeight { name: name.into() });
        }
        let sizes = Dims::new(dims);
        let elements = sizes.and_then(Layout::contiguous).map(|l| l.elements());
        let expected = elements.and_then(|elements| dtype.bytes_for(elements));
        let (Some(dims), Some(expected)) = (
            sizes.filter(|dims| dims.from_end(0).is_multiple_of(dtype.block_len())),
            expected,
        ) else {
            return Err(SessionError::WeightShape {
                name: name.into(),
                dtype,
                dims: dims.to_vec(),
            });
        };
        if host.len() != expected {
            return Err(SessionError::WeightSize {
                name: name.into(),
                dtype,
                dims,
                expected,
                found: host.len(),
            });
        }
        self.by_name.insert(name.into(), self.weights.len());
        self.weights.push(Weight {
            info: WeightInfo {
                name: name.into(),
                dtype,
                dims,
                bytes: expected,
            },
            host,
            prepared: vec![None; n_devices],
        });
        Ok(())
    }

    pub(crate) fn infos(&self) -> Vec<WeightInfo> {
        self.weights.iter().map(|w| w.info.clone()).collect()
    }

    pub(crate) fn info(&self, name: &str) -> Option<&WeightInfo> {
        Some(&self.weights.get(*self.by_name.get(name)?)?.info)
    }

    /// Device memory that the prepared weights of a device take.
    pub(crate) fn prepared_bytes(&self, device: usize) -> usize {
        let prepared = self.weights.iter().filter_map(|w| w.prepared.get(device));
        prepared.flatten().map(Buffer::len).sum()
    }

    /// Verifies that the session has the weights that `graph` names, as it names them.
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), CompileError> {
        for storage in graph.storages() {
            if storage.kind != StorageKind::Weight {
                continue;
            }
            let Some(info) = self.info(&storage.name) else {
                return Err(CompileError::MissingWeight {
                    name: storage.name.clone(),
                });
            };
            if (info.dtype, info.dims) != (storage.dtype, storage.dims) {
                return Err(CompileError::WeightMismatch {
                    name: storage.name.clone(),
                    wanted_dtype: storage.dtype,
                    wanted: storage.dims,
                    found_dtype: info.dtype,
                    found: info.dims,
                });
            }
        }
        Ok(())
    }

    /// Each device's form of each weight that its segments read, made at its first use.
    pub(crate) fn prepare(
        &mut self,
        graph: &Graph,
        segments: &[Segment],
        devices: &[Arc<dyn Backend>],
    ) -> Result<Vec<(StorageId, DeviceId, Buffer)>, CompileError> {
        let mut uses: HashMap<(StorageId, DeviceId), Vec<WeightUse<'_>>> = HashMap::new();
        let mut order = Vec::new();
        for segment in segments {
            for node in segment.nodes.iter().filter_map(|&id| graph.node(id)) {
                for (operand, value) in node.inputs().enumerate() {
                    if node.storage_of(value).kind == StorageKind::Weight {
                        let place = (value.storage, segment.device);
                        let uses = uses.entry(place).or_default();
                        if uses.is_empty() {
                            order.push(place);
                        }
                        uses.push(WeightUse { node, operand });
                    }
                }
            }
        }
        let mut bound = Vec::with_capacity(order.len());
        for (id, device) in order {
            let (Some(storage), Some(uses)) =
                (graph.storages().get(id.index()), uses.get(&(id, device)))
            else {
                continue;
            };
            let weight = self.by_name.get(&storage.name);
            let weight = weight.and_then(|&at| self.weights.get_mut(at));
            let (Some(weight), Some(backend)) = (weight, devices.get(device.index())) else {
                return Err(CompileError::MissingWeight {
                    name: storage.name.clone(),
                });
            };
            let buffer = match weight.prepared.get(device.index()).cloned().flatten() {
                Some(buffer) => buffer,
                None => backend.prepare(storage, &weight.host, uses)?,
            };
            if let Some(prepared) = weight.prepared.get_mut(device.index()) {
                *prepared = Some(buffer.clone());
            }
            bound.push((id, device, buffer));
        }
        Ok(bound)
    }
}
