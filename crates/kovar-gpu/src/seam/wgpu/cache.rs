//! wgpu's pipeline cache, saved in a file of the user's cache folder.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

/// Compiled pipelines that other processes can reuse.
#[derive(Debug)]
pub(super) struct PipelineCache {
    pub(super) cache: ::wgpu::PipelineCache,
    path: PathBuf,
}

impl PipelineCache {
    /// The cache of a driver, empty if there is no file or the driver does not accept it; `None`
    /// where the API has none.
    pub(super) fn load(
        folder: &Path,
        info: &::wgpu::AdapterInfo,
        device: &::wgpu::Device,
    ) -> Option<Self> {
        let key = ::wgpu::util::pipeline_cache_key(info)?;
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let driver = hasher.hash_one((&info.name, &info.driver, &info.driver_info));
        let path = folder.join(format!("{key}_{driver:016x}"));
        let data = fs::read(&path).ok();
        let scope = device.push_error_scope(::wgpu::ErrorFilter::Validation);
        // SAFETY: the file's name identifies this driver, and only `save` writes the file, with
        // data from the driver. wgpu checks its header, and drivers check their own.
        let cache = unsafe {
            device.create_pipeline_cache(&::wgpu::PipelineCacheDescriptor {
                label: Some("kovar"),
                data: data.as_deref(),
                fallback: true,
            })
        };
        let refused = pollster::block_on(scope.pop()).is_some();
        (!refused).then_some(Self { cache, path })
    }

    /// Writes the file, whole or not at all. A cache that can't be written is no error: the next
    /// process compiles its pipelines again.
    pub(super) fn save(&self) {
        let Some(data) = self.cache.get_data() else {
            return;
        };
        let Some(folder) = self.path.parent() else {
            return;
        };
        let part = self
            .path
            .with_extension(format!("part{}", std::process::id()));
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&part, &data))
            .and_then(|()| fs::rename(&part, &self.path));
        if written.is_err() {
            // The half-written file, if there is one.
            let _ = fs::remove_file(&part);
        }
    }
}
