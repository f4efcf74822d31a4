//! The weights of a session.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Buffer};
use kovar_core::{DType, Dims, Graph, HostBytes, Layout, StorageId, StorageKind};

use super::error::SessionError;
use super::states::check_tensor;
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::passes::Passes;
use crate::run::wait_for;
use crate::schedule::WeightUses;

struct Weight {
    name: String,
    dtype: DType,
    dims: Dims,
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
            name: name.into(),
            dtype,
            dims,
            host,
            prepared: vec![None; n_devices],
        });
        Ok(())
    }

    /// The index of the weight of a name.
    fn find(&self, name: &str) -> Result<usize, SessionError> {
        let at = self.by_name.get(name).copied();
        at.ok_or_else(|| SessionError::MissingWeight { name: name.into() })
    }

    /// The weights that a device has prepared, with the bytes of device memory that they take.
    pub(crate) fn prepared(&self, device: DeviceId) -> impl Iterator<Item = (&str, usize)> {
        self.weights.iter().filter_map(move |weight| {
            let buffer = weight.prepared[device.index()].as_ref()?;
            Some((weight.name.as_str(), buffer.len()))
        })
    }

    /// Verifies that the session has the weights that `graph` names, as it names them.
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), SessionError> {
        let storages = graph.storages().iter();
        for storage in storages.filter(|storage| storage.kind == StorageKind::Weight) {
            let weight = &self.weights[self.find(&storage.name)?];
            check_tensor(storage, weight.dtype, weight.dims)?;
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
        let weight = self.find(&storage.name).ok().map(|at| &self.weights[at]);
        let prepared = weight.and_then(|weight| weight.prepared[device.index()].as_ref());
        prepared.map_or_else(|| backend.prepared_bytes(storage, uses), Buffer::len)
    }

    /// The bytes of a weight in host memory.
    pub(crate) fn host(&self, name: &str) -> Result<HostBytes, SessionError> {
        Ok(self.weights[self.find(name)?].host.clone())
    }

    /// Each device's form of each weight that its segments read, prepared at its first use. A form
    /// is kept once its device has finished preparing it.
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
            let at = self.find(&storage.name)?;
            let weight = &self.weights[at];
            let buffer = match weight.prepared[device.index()].clone() {
                Some(buffer) => buffer,
                None => {
                    let buffer = devices.at(device).prepare(storage, &weight.host, &uses)?;
                    made.push((at, device, buffer.clone()));
                    on.insert(device);
                    buffer
                }
            };
            bound.push((id, device, buffer));
        }
        wait_for(devices, on)?;
        for (at, device, buffer) in made {
            self.weights[at].prepared[device.index()] = Some(buffer);
        }
        Ok(bound)
    }
}
