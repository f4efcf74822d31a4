//! Opening a device.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::PipelineCache;
use super::device::WgpuDevice;
use super::{Adapter, FEATURES, import};
use crate::seam::{Device, SeamError};

impl Adapter {
    /// Opens the device with all its features. Compiled pipelines are saved in the folder `cache`.
    pub(crate) fn open(&self, cache: Option<&Path>) -> Result<Arc<dyn Device>, SeamError> {
        use ::wgpu::Features as Theirs;
        let offered = self.0.features();
        let mut wanted = Theirs::TIMESTAMP_QUERY | Theirs::PIPELINE_CACHE;
        for (_, theirs) in FEATURES {
            wanted |= theirs;
        }
        let required = offered & wanted;
        // SAFETY: our kernels use cooperative matrices as wgpu documents them.
        let experimental = unsafe { ::wgpu::ExperimentalFeatures::enabled() };
        let descriptor = ::wgpu::DeviceDescriptor {
            label: Some("kovar"),
            required_features: required,
            required_limits: self.0.limits(),
            experimental_features: experimental,
            memory_hints: ::wgpu::MemoryHints::Performance,
            trace: ::wgpu::Trace::Off,
        };
        let failed = |message| SeamError::Driver {
            what: "opening the device".to_owned(),
            message,
        };
        // A driver may list the extension and refuse it; the device is then opened without it.
        let (importer, (device, queue)) = match import::open(&self.0, &descriptor) {
            Some((importer, opened)) => (Some(importer), opened),
            None => {
                let opened = pollster::block_on(self.0.request_device(&descriptor));
                (None, opened.map_err(|e| failed(e.to_string()))?)
            }
        };
        let errors = Arc::new(Mutex::new(None));
        let uncaptured = errors.clone();
        device.on_uncaptured_error(Arc::new(move |error: ::wgpu::Error| {
            let mut first = uncaptured.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| error.to_string());
        }));
        let lost = Arc::new(Mutex::new(None));
        let called = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            let mut lost = called.lock().unwrap_or_else(PoisonError::into_inner);
            lost.get_or_insert_with(|| {
                if message.is_empty() {
                    format!("{reason:?}")
                } else {
                    message
                }
            });
        });
        let cache = cache
            .filter(|_| required.contains(Theirs::PIPELINE_CACHE))
            .and_then(|folder| PipelineCache::load(folder, &self.0.get_info(), &device));
        let mut caps = self.caps();
        caps.imports_host = importer.is_some();
        let period = queue.get_timestamp_period();
        Ok(Arc::new(WgpuDevice {
            adapter: self.clone(),
            importer,
            caps,
            period,
            submissions: Mutex::default(),
            errors,
            lost,
            cache,
            queue,
            device,
        }))
    }
}
