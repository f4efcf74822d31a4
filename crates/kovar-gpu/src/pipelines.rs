//! Pipelines, made once per device and kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::kernel::{self, Access, Dispatch, Features, Kernel};
use crate::seam::{BindingKind, Device, Pipeline, PipelineSpec, SeamError};

/// What tells pipelines apart.
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
    /// The pipeline of a dispatch on `device`, whose operands of [`Access::Read`] are bound
    /// read-only where `read_only` says so.
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

/// A kernel's text in the variant of `features`, and those that it has variants for.
fn text(
    kernel: &'static Kernel,
    features: Features,
) -> Result<(Features, &'static str), SeamError> {
    kernel::source(kernel.file, features).ok_or_else(|| SeamError::Invalid {
        what: format!("kernel {}", kernel.entry),
        message: "no such file".to_owned(),
    })
}

impl Pipelines {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<dyn Pipeline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pipelines of `keys`. Those that do not exist are made on several threads.
    pub(crate) fn all(
        &self,
        device: &dyn Device,
        keys: &[Key],
    ) -> Result<Vec<Arc<dyn Pipeline>>, SeamError> {
        let mut missing: Vec<&Key> = {
            let made = self.lock();
            keys.iter().filter(|key| !made.contains_key(key)).collect()
        };
        let mut seen = std::collections::HashSet::new();
        missing.retain(|key| seen.insert(*key));
        self.make(device, &missing)?;
        let made = self.lock();
        let found = keys.iter().map(|key| made.get(key).cloned());
        found
            .collect::<Option<_>>()
            .ok_or_else(|| SeamError::Invalid {
                what: "a pipeline".to_owned(),
                message: "it was not made".to_owned(),
            })
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
                let panicked = |_| SeamError::Invalid {
                    what: "a pipeline".to_owned(),
                    message: "its compiler panicked".to_owned(),
                };
                made = made.and(other.join().map_err(panicked).and_then(|made| made));
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
        let key = Key::new(kernel, features, constants, bindings)?;
        if let Some(pipeline) = self.lock().get(&key) {
            return Ok(pipeline.clone());
        }
        let pipeline = key.make(device)?;
        Ok(self.lock().entry(key).or_insert(pipeline).clone())
    }
}

/// The constants that a variant's text declares: those of parts that it lacks are gone.
fn declared(text: &str, constants: &[(&'static str, u32)]) -> Vec<(&'static str, u32)> {
    let declared = |name: &str| text.contains(&format!("override {name}:"));
    constants
        .iter()
        .copied()
        .filter(|(name, _)| declared(name))
        .collect()
}

/// The text with the bindings that are read-only declared so.
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
