//! The seam over wgpu: Metal, Vulkan and DirectX 12.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::{
    BindGroup, BindingKind, Buffer, BufferRange, BufferUse, Caps, Command, Device, Pipeline,
    PipelineSpec, Recording, SeamError, Submission,
};
use crate::kernel::Features;

/// A GPU of the machine that can be opened.
pub(crate) struct Adapter(::wgpu::Adapter);

/// The GPUs of the machine, hardware before software.
pub(crate) fn adapters() -> Vec<Adapter> {
    let backends = ::wgpu::Backends::VULKAN | ::wgpu::Backends::METAL | ::wgpu::Backends::DX12;
    let instance = ::wgpu::Instance::new(::wgpu::InstanceDescriptor {
        backends,
        ..::wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut adapters = pollster::block_on(instance.enumerate_adapters(backends));
    adapters.sort_by_key(|adapter| adapter.get_info().device_type == ::wgpu::DeviceType::Cpu);
    adapters.into_iter().map(Adapter).collect()
}

impl Adapter {
    /// Opens the device with all features but `masked`.
    pub(crate) fn open(&self, masked: Features) -> Result<Arc<dyn Device>, SeamError> {
        let info = self.0.get_info();
        let wanted = [
            (Features::SUBGROUPS, ::wgpu::Features::SUBGROUP),
            (Features::F16, ::wgpu::Features::SHADER_F16),
            (
                Features::MATRICES,
                ::wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
            ),
        ];
        let mut features = Features::NONE;
        let mut required = ::wgpu::Features::empty();
        for (feature, theirs) in wanted {
            if self.0.features().contains(theirs) && !masked.contains(feature) {
                features = features.with(feature);
                required |= theirs;
            }
        }
        let limits = self.0.limits();
        let experimental = match features.contains(Features::MATRICES) {
            // SAFETY: our kernels use cooperative matrices as wgpu documents them.
            true => unsafe { ::wgpu::ExperimentalFeatures::enabled() },
            false => ::wgpu::ExperimentalFeatures::disabled(),
        };
        let opened = pollster::block_on(self.0.request_device(&::wgpu::DeviceDescriptor {
            label: Some("kovar"),
            required_features: required,
            required_limits: limits.clone(),
            experimental_features: experimental,
            memory_hints: ::wgpu::MemoryHints::Performance,
            trace: ::wgpu::Trace::Off,
        }));
        let (device, queue) = opened.map_err(|error| SeamError::Invalid {
            what: "opening the device".to_owned(),
            message: error.to_string(),
        })?;
        let errors = Arc::new(Mutex::new(None));
        let uncaptured = errors.clone();
        device.on_uncaptured_error(Arc::new(move |error: ::wgpu::Error| {
            let mut first = uncaptured.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| error.to_string());
        }));
        let subgroups = features.contains(Features::SUBGROUPS);
        let caps = Caps {
            name: info.name,
            driver: format!("{} {} {}", info.backend, info.driver, info.driver_info),
            features,
            subgroup_sizes: match subgroups {
                true => (info.subgroup_min_size, info.subgroup_max_size),
                false => (0, 0),
            },
            binding_alignment: u64::from(
                limits
                    .min_storage_buffer_offset_alignment
                    .max(limits.min_uniform_buffer_offset_alignment),
            ),
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            max_buffer_bytes: limits.max_buffer_size,
            max_workgroups: limits.max_compute_workgroups_per_dimension,
            max_workgroup_size: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            unified_memory: info.device_type == ::wgpu::DeviceType::IntegratedGpu,
            memory_bytes: None,
            software: info.device_type == ::wgpu::DeviceType::Cpu,
        };
        Ok(Arc::new(WgpuDevice {
            device,
            queue,
            caps,
            submissions: Mutex::new(Vec::new()),
            errors,
        }))
    }
}

struct WgpuDevice {
    device: ::wgpu::Device,
    queue: ::wgpu::Queue,
    caps: Caps,
    submissions: Mutex<Vec<::wgpu::SubmissionIndex>>,
    /// The first error that no scope caught.
    errors: Arc<Mutex<Option<String>>>,
}

impl fmt::Debug for WgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WgpuDevice").field(&self.caps.name).finish()
    }
}

macro_rules! handle {
    ($name:ident($theirs:ty): $seam:ident) => {
        #[derive(Debug)]
        struct $name($theirs);

        impl $seam for $name {
            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}

#[derive(Debug)]
struct WgpuPipeline {
    pipeline: ::wgpu::ComputePipeline,
    layout: ::wgpu::BindGroupLayout,
}

impl Pipeline for WgpuPipeline {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

handle!(WgpuBindGroup(::wgpu::BindGroup): BindGroup);

#[derive(Debug)]
struct WgpuBuffer(::wgpu::Buffer);

impl Buffer for WgpuBuffer {
    fn len(&self) -> u64 {
        self.0.size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct WgpuRecording(::wgpu::CommandBuffer);

impl Recording for WgpuRecording {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn foreign(what: &str) -> SeamError {
    SeamError::Invalid {
        what: what.to_owned(),
        message: "a handle of another device".to_owned(),
    }
}

fn ours(buffer: &Arc<dyn Buffer>) -> Result<&::wgpu::Buffer, SeamError> {
    let buffer = buffer.as_any().downcast_ref::<WgpuBuffer>();
    buffer
        .map(|buffer| &buffer.0)
        .ok_or_else(|| foreign("buffer"))
}

impl WgpuDevice {
    /// Runs `make` and returns what wgpu has to say about it as an error.
    fn scoped<T>(&self, what: &str, bytes: u64, make: impl FnOnce() -> T) -> Result<T, SeamError> {
        let memory = self
            .device
            .push_error_scope(::wgpu::ErrorFilter::OutOfMemory);
        let validation = self
            .device
            .push_error_scope(::wgpu::ErrorFilter::Validation);
        let made = make();
        let invalid = pollster::block_on(validation.pop());
        let refused = pollster::block_on(memory.pop());
        if refused.is_some() {
            return Err(SeamError::OutOfMemory { bytes });
        }
        match invalid {
            Some(error) => Err(SeamError::Invalid {
                what: what.to_owned(),
                message: error.to_string(),
            }),
            None => Ok(made),
        }
    }
}

impl Device for WgpuDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError> {
        use ::wgpu::BufferUsages as Usages;
        let copies = Usages::COPY_SRC | Usages::COPY_DST;
        let usage = match usage {
            BufferUse::Storage => Usages::STORAGE | copies,
            BufferUse::Uniform => Usages::UNIFORM | Usages::COPY_DST,
            BufferUse::Scalars => Usages::STORAGE | Usages::UNIFORM | Usages::COPY_DST,
            BufferUse::Upload => Usages::MAP_WRITE | Usages::COPY_SRC,
            BufferUse::Readback => Usages::MAP_READ | Usages::COPY_DST,
        };
        let buffer = self.scoped("a buffer", bytes, || {
            self.device.create_buffer(&::wgpu::BufferDescriptor {
                label: None,
                size: bytes.next_multiple_of(4).max(4),
                usage,
                mapped_at_creation: false,
            })
        })?;
        Ok(Arc::new(WgpuBuffer(buffer)))
    }

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError> {
        let entries: Vec<_> = spec
            .bindings
            .iter()
            .zip(0..)
            .map(|(kind, binding)| ::wgpu::BindGroupLayoutEntry {
                binding,
                visibility: ::wgpu::ShaderStages::COMPUTE,
                ty: ::wgpu::BindingType::Buffer {
                    ty: match kind {
                        BindingKind::Uniform => ::wgpu::BufferBindingType::Uniform,
                        BindingKind::Read => ::wgpu::BufferBindingType::Storage { read_only: true },
                        BindingKind::Write => {
                            ::wgpu::BufferBindingType::Storage { read_only: false }
                        }
                    },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let constants: Vec<(&str, f64)> = spec
            .constants
            .iter()
            .map(|&(name, value)| (name, f64::from(value)))
            .collect();
        let what = format!("kernel {}", spec.entry);
        let (pipeline, layout) = self.scoped(&what, 0, || {
            // SAFETY: our kernels stay within their operands' windows, which bind groups cover,
            // end all their loops, and do not divide by 0.
            let module = unsafe {
                self.device.create_shader_module_trusted(
                    ::wgpu::ShaderModuleDescriptor {
                        label: Some(spec.entry),
                        source: ::wgpu::ShaderSource::Wgsl(spec.source.into()),
                    },
                    ::wgpu::ShaderRuntimeChecks::unchecked(),
                )
            };
            let layout = self
                .device
                .create_bind_group_layout(&::wgpu::BindGroupLayoutDescriptor {
                    label: Some(spec.entry),
                    entries: &entries,
                });
            let pipeline_layout =
                self.device
                    .create_pipeline_layout(&::wgpu::PipelineLayoutDescriptor {
                        label: Some(spec.entry),
                        bind_group_layouts: &[Some(&layout)],
                        immediate_size: 0,
                    });
            let pipeline =
                self.device
                    .create_compute_pipeline(&::wgpu::ComputePipelineDescriptor {
                        label: Some(spec.entry),
                        layout: Some(&pipeline_layout),
                        module: &module,
                        entry_point: Some(spec.entry),
                        compilation_options: ::wgpu::PipelineCompilationOptions {
                            constants: &constants,
                            zero_initialize_workgroup_memory: false,
                        },
                        cache: None,
                    });
            (pipeline, layout)
        })?;
        Ok(Arc::new(WgpuPipeline { pipeline, layout }))
    }

    fn create_bind_group(
        &self,
        pipeline: &Arc<dyn Pipeline>,
        ranges: &[BufferRange],
    ) -> Result<Arc<dyn BindGroup>, SeamError> {
        let pipeline = pipeline.as_any().downcast_ref::<WgpuPipeline>();
        let layout = &pipeline.ok_or_else(|| foreign("pipeline"))?.layout;
        let mut entries = Vec::with_capacity(ranges.len());
        for (range, binding) in ranges.iter().zip(0..) {
            entries.push(::wgpu::BindGroupEntry {
                binding,
                resource: ::wgpu::BindingResource::Buffer(::wgpu::BufferBinding {
                    buffer: ours(&range.buffer)?,
                    offset: range.bytes.start,
                    size: NonZeroU64::new(range.bytes.end - range.bytes.start),
                }),
            });
        }
        let group = self.scoped("a bind group", 0, || {
            self.device.create_bind_group(&::wgpu::BindGroupDescriptor {
                label: None,
                layout,
                entries: &entries,
            })
        })?;
        Ok(Arc::new(WgpuBindGroup(group)))
    }

    fn record(&self, commands: &[Command<'_>]) -> Result<Box<dyn Recording>, SeamError> {
        let mut encoder = self
            .device
            .create_command_encoder(&::wgpu::CommandEncoderDescriptor::default());
        let mut rest = commands;
        while let Some(first) = rest.first() {
            match *first {
                Command::Dispatch { .. } => {
                    let mut pass =
                        encoder.begin_compute_pass(&::wgpu::ComputePassDescriptor::default());
                    while let Some(&Command::Dispatch {
                        pipeline,
                        bindings,
                        workgroups: [x, y, z],
                    }) = rest.first()
                    {
                        let pipeline = pipeline.as_any().downcast_ref::<WgpuPipeline>();
                        let bindings = bindings.as_any().downcast_ref::<WgpuBindGroup>();
                        let (Some(pipeline), Some(bindings)) = (pipeline, bindings) else {
                            return Err(foreign("dispatch"));
                        };
                        pass.set_pipeline(&pipeline.pipeline);
                        pass.set_bind_group(0, &bindings.0, &[]);
                        pass.dispatch_workgroups(x, y, z);
                        rest = &rest[1..];
                    }
                    continue;
                }
                Command::Copy {
                    from,
                    from_offset,
                    to,
                    to_offset,
                    len,
                } => encoder.copy_buffer_to_buffer(
                    ours(from)?,
                    from_offset,
                    ours(to)?,
                    to_offset,
                    len,
                ),
                Command::Clear {
                    buffer,
                    offset,
                    len,
                } => encoder.clear_buffer(ours(buffer)?, offset, Some(len)),
            }
            rest = &rest[1..];
        }
        let recorded = self.scoped("a recording", 0, || encoder.finish())?;
        Ok(Box::new(WgpuRecording(recorded)))
    }

    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError> {
        let mut buffers = Vec::with_capacity(recordings.len());
        for recording in recordings {
            let recording = recording.into_any().downcast::<WgpuRecording>();
            buffers.push(recording.map_err(|_| foreign("recording"))?.0);
        }
        let mut submissions = self
            .submissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let index = self.scoped("a submission", 0, || self.queue.submit(buffers))?;
        submissions.push(index);
        Ok(Submission(submissions.len() as u64 - 1))
    }

    fn wait(&self, submission: Submission) -> Result<(), SeamError> {
        let index = {
            let submissions = self
                .submissions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            submissions.get(submission.0 as usize).cloned()
        };
        let waited = self.device.poll(::wgpu::PollType::Wait {
            submission_index: index,
            timeout: None,
        });
        waited.map_err(|error| SeamError::Lost {
            reason: error.to_string(),
        })?;
        let error = self
            .errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match error {
            Some(message) => Err(SeamError::Invalid {
                what: "work in flight".to_owned(),
                message,
            }),
            None => Ok(()),
        }
    }

    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        self.scoped("a write", bytes.len() as u64, || {
            self.queue.write_buffer(buffer, offset, bytes);
        })
    }

    fn read(&self, buffer: &Arc<dyn Buffer>, into: &mut [u8]) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        let slice = buffer.slice(..);
        let mapped = Arc::new(Mutex::new(None));
        let result = mapped.clone();
        slice.map_async(::wgpu::MapMode::Read, move |mapped| {
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(mapped);
        });
        let lost = |reason: String| SeamError::Lost { reason };
        let polled = self.device.poll(::wgpu::PollType::wait_indefinitely());
        polled.map_err(|error| lost(error.to_string()))?;
        let mapped = mapped.lock().unwrap_or_else(PoisonError::into_inner).take();
        match mapped {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(lost(error.to_string())),
            None => return Err(lost("a map request never came back".to_owned())),
        }
        let view = slice.get_mapped_range().map_err(|e| lost(e.to_string()))?;
        into.copy_from_slice(&view[..into.len()]);
        drop(view);
        buffer.unmap();
        Ok(())
    }
}
