//! Pipelines, made once per device and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::{self, Access, Dispatch, Features, Kernel};
use crate::seam::{BindingKind, Device, Pipeline, PipelineSpec, SeamError};

/// What tells pipelines apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kernel: &'static Kernel,
    features: Features,
    constants: Vec<(&'static str, u32)>,
    bindings: Vec<BindingKind>,
}

/// The pipelines of a device.
#[derive(Debug, Default)]
pub(crate) struct Pipelines(Mutex<HashMap<Key, Arc<dyn Pipeline>>>);

impl Pipelines {
    /// The pipeline of a dispatch, whose operands of [`Access::Read`] are bound read-only where
    /// `read_only` says so.
    pub(crate) fn of(
        &self,
        device: &dyn Device,
        dispatch: &Dispatch,
        read_only: &[bool],
    ) -> Result<Arc<dyn Pipeline>, SeamError> {
        let kernel = dispatch.kernel;
        let allowed = device.caps().features.with(Features::NARROW);
        let missing = || SeamError::Invalid {
            what: format!("kernel {}", kernel.entry),
            message: "no such file".to_owned(),
        };
        let wanted = dispatch.features.among(allowed);
        let (features, text) = kernel::source(kernel.file, wanted).ok_or_else(missing)?;
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
        let key = Key {
            kernel,
            features,
            constants: declared(text, &dispatch.constants),
            bindings,
        };
        let mut pipelines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = pipelines.get(&key) {
            return Ok(pipeline.clone());
        }
        let pipeline = device.create_pipeline(&PipelineSpec {
            source: &narrowed(text, &key.bindings),
            entry: kernel.entry,
            constants: &key.constants,
            bindings: &key.bindings,
        })?;
        pipelines.insert(key, pipeline.clone());
        Ok(pipeline)
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
