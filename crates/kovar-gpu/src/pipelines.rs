//! Pipelines, created once per device and kept.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::kernel::{self, Access, Dispatch, Features, Kernel};
use crate::seam::{BindingKind, Device, Pipeline, PipelineSpec, SeamError};

/// What identifies a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    kernel: &'static Kernel,
    features: Features,
    constants: Vec<(&'static str, u32)>,
    bindings: Vec<BindingKind>,
}

/// The pipelines of a device.
#[derive(Debug, Default)]
pub(crate) struct Pipelines(Mutex<HashMap<Key, Arc<dyn Pipeline>>>);

impl Key {
    /// The pipeline of a dispatch on `device`. By operand, `read_only` says whether one of
    /// [`Access::Read`] is bound read-only.
    pub(crate) fn of(
        device: &dyn Device,
        dispatch: &Dispatch,
        read_only: &[bool],
    ) -> Result<Self, SeamError> {
        let kernel = dispatch.kernel;
        let allowed = device.caps().features.with(Features::CHOICES);
        let mut bindings = vec![BindingKind::Uniform];
        let mut operands = read_only.iter();
        for access in kernel.bindings {
            bindings.push(match access {
                Access::Scalars => BindingKind::Read,
                Access::UniformScalars => BindingKind::Uniform,
                Access::Write => {
                    operands.next();
                    BindingKind::Write
                }
                Access::Read if operands.next() == Some(&true) => BindingKind::Read,
                Access::Read => BindingKind::Write,
            });
        }
        let features = dispatch.features.among(allowed);
        Self::new(kernel, features, &dispatch.constants, bindings)
    }

    fn new(
        kernel: &'static Kernel,
        features: Features,
        constants: &[(&'static str, u32)],
        bindings: Vec<BindingKind>,
    ) -> Result<Self, SeamError> {
        let (features, text) = text(kernel, features)?;
        Ok(Self {
            kernel,
            features,
            constants: declared(text, constants),
            bindings,
        })
    }

    fn make(&self, device: &dyn Device) -> Result<Arc<dyn Pipeline>, SeamError> {
        let (_, text) = text(self.kernel, self.features)?;
        device.create_pipeline(&PipelineSpec {
            source: &narrowed(text, &self.bindings),
            entry: self.kernel.entry,
            constants: &self.constants,
            bindings: &self.bindings,
        })
    }
}

/// A kernel's text in the variant of `features`, and the features of that variant.
fn text(
    kernel: &'static Kernel,
    features: Features,
) -> Result<(Features, &'static str), SeamError> {
    let Kernel { entry, file, .. } = kernel;
    kernel::source(file, features).ok_or(SeamError::NoSource { entry, file })
}

impl Pipelines {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<dyn Pipeline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pipelines of `keys`. Missing ones are created on several threads.
    pub(crate) fn all(
        &self,
        device: &dyn Device,
        keys: &[Key],
    ) -> Result<Vec<Arc<dyn Pipeline>>, SeamError> {
        let mut missing: Vec<&Key> = {
            let made = self.lock();
            keys.iter().filter(|key| !made.contains_key(key)).collect()
        };
        let mut seen = HashSet::new();
        missing.retain(|key| seen.insert(*key));
        self.make(device, &missing)?;
        keys.iter().map(|key| self.of_key(device, key)).collect()
    }

    /// The pipeline of a key.
    pub(crate) fn of_key(
        &self,
        device: &dyn Device,
        key: &Key,
    ) -> Result<Arc<dyn Pipeline>, SeamError> {
        if let Some(pipeline) = self.lock().get(key) {
            return Ok(pipeline.clone());
        }
        let pipeline = key.make(device)?;
        Ok(self.lock().entry(key.clone()).or_insert(pipeline).clone())
    }

    fn make(&self, device: &dyn Device, missing: &[&Key]) -> Result<(), SeamError> {
        if missing.is_empty() {
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&key) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let pipeline = key.make(device)?;
                self.lock().insert(key.clone(), pipeline);
            }
            Ok(())
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(missing.len()))
                .map(|_| scope.spawn(work))
                .collect();
            let mut made = work();
            for other in others {
                let joined = other.join().map_err(|_| SeamError::CompilerPanicked);
                made = made.and(joined.flatten());
            }
            made
        })?;
        device.save_pipelines();
        Ok(())
    }

    /// The pipeline of a kernel whose bindings are of these kinds, binding 0 first.
    pub(crate) fn get(
        &self,
        device: &dyn Device,
        kernel: &'static Kernel,
        features: Features,
        constants: &[(&'static str, u32)],
        bindings: Vec<BindingKind>,
    ) -> Result<Arc<dyn Pipeline>, SeamError> {
        self.of_key(device, &Key::new(kernel, features, constants, bindings)?)
    }
}

/// The constants that a variant's text declares. Those of code that it lacks are dropped.
fn declared(text: &str, constants: &[(&'static str, u32)]) -> Vec<(&'static str, u32)> {
    let declared = |name: &str| text.contains(&format!("override {name}:"));
    constants
        .iter()
        .copied()
        .filter(|(name, _)| declared(name))
        .collect()
}

/// The text with its read-only bindings declared as such.
pub(crate) fn narrowed(text: &str, bindings: &[BindingKind]) -> String {
    let mut text = text.to_owned();
    for (binding, kind) in bindings.iter().enumerate() {
        if *kind == BindingKind::Read {
            let written = format!("@binding({binding})\nvar<storage, read_write>");
            let read = format!("@binding({binding})\nvar<storage, read>");
            text = text.replace(&written, &read);
        }
    }
    text
}
