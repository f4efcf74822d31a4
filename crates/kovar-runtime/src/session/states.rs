//! The states of a session: tensors that live across runs and that its plans share by name.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Buffer};
use kovar_core::{DType, Dims, Graph, Storage, StorageId, StorageKind};

use super::error::SessionError;
use crate::device::{DeviceId, DeviceSet};
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

    /// Verifies that a state of the same name, if there is one, has the same dtype and dims.
    pub(crate) fn check(&self, storage: &Storage) -> Result<(), SessionError> {
        let Ok(state) = self.get(&storage.name) else {
            return Ok(());
        };
        if (state.info.dtype, state.info.dims) == (storage.dtype, storage.dims) {
            return Ok(());
        }
        Err(SessionError::StateMismatch {
            name: storage.name.clone(),
            wanted_dtype: storage.dtype,
            wanted: storage.dims,
            found_dtype: state.info.dtype,
            found: state.info.dims,
        })
    }

    /// The memory of each state of `graph`, set to zero when a plan first uses it. If that fails, the
    /// new states are dropped.
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
            if storage.kind == StorageKind::State
                && let Some(device) = placement.home(id)
                && let Some(backend) = devices.get(device.index())
            {
                let buffer = self.get_or_create(storage, device, backend)?;
                bound.push((id, device, buffer));
            }
        }
        Ok(bound)
    }

    fn get_or_create(
        &mut self,
        storage: &Storage,
        device: DeviceId,
        backend: &Arc<dyn Backend>,
    ) -> Result<Buffer, SessionError> {
        self.check(storage)?;
        if let Ok(state) = self.get(&storage.name) {
            return Ok(state.buffer.clone());
        }
        let info = backend.info();
        if storage.bytes > info.max_buffer_bytes {
            return Err(SessionError::StateExceedsBuffer {
                name: storage.name.clone(),
                bytes: storage.bytes,
                device: info.id.clone(),
                max: info.max_buffer_bytes,
            });
        }
        let others = self.bytes(device.index());
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
    pub(crate) fn bytes(&self, device: usize) -> usize {
        let states = self.states.iter();
        let there = states.filter(|state| state.info.device.index() == device);
        there.map(|state| state.buffer.len()).sum()
    }
}
