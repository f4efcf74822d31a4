//! The states of a session: tensors that live across runs and that its plans share by name.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Buffer};
use kovar_core::{DType, Dims, Graph, Storage, StorageId, StorageKind};

use super::error::SessionError;
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::place::placement::Placement;
use crate::run::wait_for;

/// A state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateInfo {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its dims, outermost first.
    pub dims: Dims,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its home.
    pub device: DeviceId,
}

#[derive(Clone)]
pub(crate) struct State {
    pub(crate) info: StateInfo,
    pub(crate) buffer: Buffer,
}

/// States by name, in the order in which they were made.
#[derive(Default)]
pub(crate) struct States {
    states: Vec<State>,
    by_name: HashMap<String, usize>,
}

impl States {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &State> {
        self.states.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Result<&State, SessionError> {
        let at = self.by_name.get(name).copied();
        at.and_then(|at| self.states.get(at))
            .ok_or_else(|| SessionError::UnknownState { name: name.into() })
    }

    /// Verifies that the states that `graph` has in common with earlier plans have the same dtype
    /// and dims.
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), SessionError> {
        let storages = graph.storages().iter();
        let mut states = storages.filter(|storage| storage.kind == StorageKind::State);
        states.try_for_each(|storage| match self.get(&storage.name) {
            Ok(State { info, .. }) => check_tensor(storage, info.dtype, info.dims),
            Err(_) => Ok(()),
        })
    }

    /// The memory of each state of `graph`, set to zero when a plan first uses it. If that fails,
    /// the new states are dropped.
    pub(crate) fn prepare(
        &mut self,
        graph: &Graph,
        placement: &Placement,
        devices: &[Arc<dyn Backend>],
    ) -> Result<Vec<(StorageId, DeviceId, Buffer)>, SessionError> {
        let kept = self.states.len();
        let bound = self.bind(graph, placement, devices).and_then(|bound| {
            let mut on = DeviceSet::default();
            let made = self.states.iter().skip(kept);
            made.for_each(|state| on.insert(state.info.device));
            wait_for(devices, on)?;
            Ok(bound)
        });
        if bound.is_err() {
            for state in self.states.drain(kept..) {
                self.by_name.remove(&state.info.name);
            }
        }
        bound
    }

    fn bind(
        &mut self,
        graph: &Graph,
        placement: &Placement,
        devices: &[Arc<dyn Backend>],
    ) -> Result<Vec<(StorageId, DeviceId, Buffer)>, SessionError> {
        let mut bound = Vec::new();
        for (id, storage) in graph.storage_ids().zip(graph.storages()) {
            if storage.kind == StorageKind::State {
                let device = placement.home(id);
                let buffer = self.get_or_create(storage, device, devices.at(device))?;
                bound.push((id, device, buffer));
            }
        }
        Ok(bound)
    }

    fn get_or_create(
        &mut self,
        storage: &Storage,
        device: DeviceId,
        backend: &dyn Backend,
    ) -> Result<Buffer, SessionError> {
        if let Ok(state) = self.get(&storage.name) {
            return Ok(state.buffer.clone());
        }
        let info = backend.info();
        let others = self.bytes(device);
        let total = others.saturating_add(storage.bytes);
        if let Some(memory) = info.memory_bytes.filter(|&memory| total as u64 > memory) {
            return Err(SessionError::StatesTooLarge {
                storage: storage.name.clone(),
                bytes: storage.bytes,
                others,
                device: info.id.clone(),
                memory,
            });
        }
        let buffer = backend.alloc_zeroed(storage.bytes.max(1))?;
        self.by_name.insert(storage.name.clone(), self.states.len());
        self.states.push(State {
            info: StateInfo {
                name: storage.name.clone(),
                dtype: storage.dtype,
                dims: storage.dims,
                bytes: storage.bytes,
                device,
            },
            buffer: buffer.clone(),
        });
        Ok(buffer)
    }

    /// The size of a device's states in bytes.
    fn bytes(&self, device: DeviceId) -> usize {
        let states = self.states.iter();
        let there = states.filter(|state| state.info.device == device);
        there.map(|state| state.buffer.len()).sum()
    }
}

/// Verifies that a graph's weight or state has the dtype and the dims that the session has for it.
pub(super) fn check_tensor(
    storage: &Storage,
    found_dtype: DType,
    found: Dims,
) -> Result<(), SessionError> {
    if (storage.dtype, storage.dims) == (found_dtype, found) {
        return Ok(());
    }
    Err(SessionError::Mismatch {
        kind: storage.kind.name(),
        name: storage.name.clone(),
        wanted_dtype: storage.dtype,
        wanted: storage.dims,
        found_dtype,
        found,
    })
}
