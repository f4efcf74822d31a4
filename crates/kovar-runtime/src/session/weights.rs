//! The weights of a session.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Buffer};
use kovar_core::{DType, Dims, Graph, HostBytes, Layout, StorageId, StorageKind};

use super::error::SessionError;
use crate::device::{DeviceId, DeviceSet};
use crate::passes::Passes;
use crate::run::wait_for;
use crate::schedule::WeightUses;

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
    /// By device, its prepared form.
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

    /// The weights that a device has prepared, with the bytes of device memory that they take.
    pub(crate) fn prepared(&self, device: usize) -> impl Iterator<Item = (&str, usize)> {
        self.weights.iter().filter_map(move |weight| {
            let buffer = weight.prepared.get(device)?.as_ref()?;
            Some((weight.info.name.as_str(), buffer.len()))
        })
    }

    /// Verifies that the session has the weights that `graph` names, as it names them.
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), SessionError> {
        for storage in graph.storages() {
            if storage.kind != StorageKind::Weight {
                continue;
            }
            let Some(info) = self.info(&storage.name) else {
                return Err(SessionError::MissingWeight {
                    name: storage.name.clone(),
                });
            };
            if (info.dtype, info.dims) != (storage.dtype, storage.dims) {
                return Err(SessionError::WeightMismatch {
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

    /// The bytes of a device's form of a weight, whether it is prepared yet or not.
    pub(crate) fn bytes_of(&self, weight_use: &WeightUses<'_>, backend: &dyn Backend) -> usize {
        let WeightUses {
            storage,
            device,
            uses,
            ..
        } = weight_use;
        let weight = self
            .by_name
            .get(&storage.name)
            .and_then(|&at| self.weights.get(at));
        let prepared = weight.and_then(|weight| weight.prepared.get(device.index())?.as_ref());
        prepared.map_or_else(|| backend.prepared_bytes(storage, uses), Buffer::len)
    }

    /// The bytes of a weight in host memory.
    pub(crate) fn host(&self, name: &str) -> Option<HostBytes> {
        let weight = self.weights.get(*self.by_name.get(name)?)?;
        Some(weight.host.clone())
    }

    /// Each device's form of each weight that its segments read, prepared at its first use. A form is
    /// kept once its device has finished preparing it.
    pub(crate) fn prepare(
        &mut self,
        graph: &Graph,
        passes: &Passes,
        devices: &[Arc<dyn Backend>],
    ) -> Result<Vec<(StorageId, DeviceId, Buffer)>, SessionError> {
        let mut bound = Vec::new();
        let mut made = Vec::new();
        let mut on = DeviceSet::default();
        for WeightUses {
            id,
            storage,
            device,
            uses,
        } in passes.weight_uses(graph)
        {
            let weight = self.by_name.get(&storage.name);
            let weight = weight.and_then(|&at| Some((at, self.weights.get(at)?)));
            let (Some((at, weight)), Some(backend)) = (weight, devices.get(device.index())) else {
                return Err(SessionError::MissingWeight {
                    name: storage.name.clone(),
                });
            };
            let buffer = match weight.prepared.get(device.index()).cloned().flatten() {
                Some(buffer) => buffer,
                None => {
                    let buffer = backend.prepare(storage, &weight.host, &uses)?;
                    made.push((at, device, buffer.clone()));
                    on.insert(device);
                    buffer
                }
            };
            bound.push((id, device, buffer));
        }
        wait_for(devices, on)?;
        for (at, device, buffer) in made {
            let prepared = self.weights.get_mut(at).map(|weight| &mut weight.prepared);
            if let Some(prepared) = prepared.and_then(|each| each.get_mut(device.index())) {
                *prepared = Some(buffer);
            }
        }
        Ok(bound)
    }
}
