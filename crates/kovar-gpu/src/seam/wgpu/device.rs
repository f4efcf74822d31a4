//! An open device of wgpu.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kovar_core::HostBytes;

use super::cache::PipelineCache;
use super::timer::{Timestamps, WgpuTimer};
use super::{Adapter, import};
use crate::seam::{
    BindGroup, BindingKind, Buffer, BufferRange, BufferUse, Caps, Command, Device, Imported,
    MAX_TIMED, MemoryBudget, Pipeline, PipelineSpec, Recording, SeamError, Submission,
    TimedRecording,
};

pub(super) struct WgpuDevice {
    pub(super) adapter: Adapter,
    pub(super) importer: Option<import::Importer>,
    pub(super) caps: Caps,
    /// Nanoseconds of a timestamp's tick.
    pub(super) period: f32,
    pub(super) submissions: Mutex<Submissions>,
    /// The first error outside all error scopes.
    pub(super) errors: Arc<Mutex<Option<String>>>,
    /// Why the device was lost, if it was.
    pub(super) lost: Arc<Mutex<Option<String>>>,
    pub(super) cache: Option<PipelineCache>,
    pub(super) queue: ::wgpu::Queue,
    pub(super) device: ::wgpu::Device,
}

/// wgpu's indices of the submissions that have not been waited for.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    /// The number of the first one.
    first: u64,
    indices: VecDeque<::wgpu::SubmissionIndex>,
}

impl fmt::Debug for WgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WgpuDevice").field(&self.caps.name).finish()
    }
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

#[derive(Debug)]
struct WgpuBindGroup(::wgpu::BindGroup);

impl BindGroup for WgpuBindGroup {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
pub(super) struct WgpuBuffer(pub(super) ::wgpu::Buffer);

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

fn foreign(what: &'static str) -> SeamError {
    SeamError::Foreign { what }
}

fn ours(buffer: &Arc<dyn Buffer>) -> Result<&::wgpu::Buffer, SeamError> {
    let buffer = buffer.as_any().downcast_ref::<WgpuBuffer>();
    buffer
        .map(|buffer| &buffer.0)
        .ok_or_else(|| foreign("buffer"))
}

fn lost(reason: String) -> SeamError {
    SeamError::Lost { reason }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls wgpu, which may panic if the device is lost, and returns a panic as an error.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, SeamError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        lost(text.unwrap_or("the driver failed").to_owned())
    })
}

/// The assertion that fails in wgpu when a wait times out just before another thread's submission
/// finds all work done. The device still works, and the callbacks that are lost do nothing.
const OVERTAKEN: &str = "If the queue is empty, the current submission index";

/// Polls; `false` at a time-out.
pub(super) fn poll(device: &::wgpu::Device, poll: ::wgpu::PollType) -> Result<bool, SeamError> {
    let polled = match guarded(|| device.poll(poll)) {
        Err(SeamError::Lost { reason }) if reason.starts_with(OVERTAKEN) => return Ok(false),
        polled => polled?,
    };
    match polled {
        Ok(_) => Ok(true),
        Err(::wgpu::PollError::Timeout) => Ok(false),
        Err(error) => Err(lost(error.to_string())),
    }
}

/// Copies a mapped range, and unmaps its buffer.
pub(super) fn bytes_of(slice: &::wgpu::BufferSlice<'_>, into: &mut [u8]) -> Result<(), SeamError> {
    let view = slice.get_mapped_range().map_err(|e| lost(e.to_string()))?;
    into.copy_from_slice(&view[..into.len()]);
    drop(view);
    slice.buffer().unmap();
    Ok(())
}

impl WgpuDevice {
    /// Runs `make` and returns the errors that wgpu reports of it.
    pub(super) fn scoped<T>(
        &self,
        what: &str,
        bytes: u64,
        make: impl FnOnce() -> T,
    ) -> Result<T, SeamError> {
        use ::wgpu::ErrorFilter as Filter;
        let internal = self.device.push_error_scope(Filter::Internal);
        let memory = self.device.push_error_scope(Filter::OutOfMemory);
        let validation = self.device.push_error_scope(Filter::Validation);
        let made = guarded(make);
        let invalid = pollster::block_on(validation.pop());
        let refused = pollster::block_on(memory.pop());
        let broken = pollster::block_on(internal.pop());
        if let Some(reason) = self.lost() {
            return Err(lost(reason));
        }
        if refused.is_some() {
            return Err(SeamError::OutOfMemory { bytes });
        }
        match invalid.or(broken) {
            Some(error) => Err(SeamError::Driver {
                what: what.to_owned(),
                message: error.to_string(),
            }),
            None => made,
        }
    }

    fn encode(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
        timestamps: Option<&mut Timestamps>,
    ) -> Result<Box<dyn Recording>, SeamError> {
        let mut encoder = self
            .device
            .create_command_encoder(&::wgpu::CommandEncoderDescriptor::default());
        match timestamps {
            None => encode(&mut encoder, commands)?,
            Some(timestamps) => {
                encode_timed(&mut encoder, commands, timestamps)?;
                timestamps.resolve(&mut encoder);
            }
        }
        let recorded = encoder.finish();
        Ok(Box::new(WgpuRecording(recorded)))
    }
}

/// Records commands, runs of dispatches as one pass.
fn encode(
    encoder: &mut ::wgpu::CommandEncoder,
    commands: &mut dyn Iterator<Item = Command<'_>>,
) -> Result<(), SeamError> {
    let mut next = commands.next();
    while let Some(command) = next {
        if !matches!(command, Command::Dispatch { .. }) {
            transfer(encoder, command)?;
            next = commands.next();
            continue;
        }
        let mut pass = encoder.begin_compute_pass(&::wgpu::ComputePassDescriptor::default());
        while let Some(command @ Command::Dispatch { .. }) = next {
            dispatch(&mut pass, command)?;
            next = commands.next();
        }
    }
    Ok(())
}

/// Records commands, each dispatch as a pass with timestamps.
fn encode_timed(
    encoder: &mut ::wgpu::CommandEncoder,
    commands: &mut dyn Iterator<Item = Command<'_>>,
    timestamps: &mut Timestamps,
) -> Result<(), SeamError> {
    for command in commands {
        if !matches!(command, Command::Dispatch { .. }) {
            transfer(encoder, command)?;
            continue;
        }
        let first = 2 * timestamps.count;
        if timestamps.count as usize == MAX_TIMED {
            return Err(SeamError::TooManyTimed);
        }
        timestamps.count += 1;
        let mut pass = encoder.begin_compute_pass(&::wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: Some(::wgpu::ComputePassTimestampWrites {
                query_set: &timestamps.queries,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            }),
        });
        dispatch(&mut pass, command)?;
    }
    Ok(())
}

fn dispatch(pass: &mut ::wgpu::ComputePass<'_>, command: Command<'_>) -> Result<(), SeamError> {
    let Command::Dispatch {
        pipeline,
        bindings,
        workgroups: [x, y, z],
    } = command
    else {
        return Ok(());
    };
    let pipeline = pipeline.as_any().downcast_ref::<WgpuPipeline>();
    let bindings = bindings.as_any().downcast_ref::<WgpuBindGroup>();
    let (Some(pipeline), Some(bindings)) = (pipeline, bindings) else {
        return Err(foreign("dispatch"));
    };
    pass.set_pipeline(&pipeline.pipeline);
    pass.set_bind_group(0, &bindings.0, &[]);
    pass.dispatch_workgroups(x, y, z);
    Ok(())
}

fn transfer(encoder: &mut ::wgpu::CommandEncoder, command: Command<'_>) -> Result<(), SeamError> {
    match command {
        Command::Dispatch { .. } => {}
        Command::Copy {
            from,
            from_offset,
            to,
            to_offset,
            len,
        } => encoder.copy_buffer_to_buffer(ours(from)?, from_offset, ours(to)?, to_offset, len),
        Command::Clear {
            buffer,
            offset,
            len,
        } => encoder.clear_buffer(ours(buffer)?, offset, Some(len)),
    }
    Ok(())
}

impl Device for WgpuDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn memory_budget(&self) -> Option<MemoryBudget> {
        self.adapter.memory_budget()
    }

    fn lost(&self) -> Option<String> {
        locked(&self.lost).clone()
    }

    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError> {
        use ::wgpu::BufferUsages as Usages;
        let copies = Usages::COPY_SRC | Usages::COPY_DST;
        let usages = match usage {
            BufferUse::Storage => Usages::STORAGE | copies,
            BufferUse::Uniform => Usages::UNIFORM | Usages::COPY_DST,
            BufferUse::Scalars => Usages::STORAGE | Usages::UNIFORM | Usages::COPY_DST,
            BufferUse::Upload => Usages::MAP_WRITE | Usages::COPY_SRC,
            BufferUse::Readback => Usages::MAP_READ | Usages::COPY_DST,
        };
        // wgpu reports larger buffers as validation errors, and panics if they are to be mapped.
        if bytes > self.caps.max_buffer_bytes & !3 {
            return Err(SeamError::OutOfMemory { bytes });
        }
        let buffer = self.scoped("a buffer", bytes, || {
            self.device.create_buffer(&::wgpu::BufferDescriptor {
                label: None,
                size: bytes.next_multiple_of(4).max(4),
                usage: usages,
                mapped_at_creation: usage == BufferUse::Upload,
            })
        })?;
        Ok(Arc::new(WgpuBuffer(buffer)))
    }

    fn import(&self, bytes: &HostBytes) -> Option<Imported> {
        let importer = self.importer.as_ref()?;
        if self.lost().is_some() {
            return None;
        }
        let imported = self.scoped("imported memory", bytes.len() as u64, || {
            importer.import(&self.device, bytes, self.caps.max_buffer_bytes)
        });
        let (buffer, start) = imported.ok()??;
        Some(Imported {
            buffer: Arc::new(WgpuBuffer(buffer)),
            start,
        })
    }

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError> {
        use ::wgpu::BufferBindingType as Type;
        let entries: Vec<_> = spec
            .bindings
            .iter()
            .zip(0..)
            .map(|(kind, binding)| ::wgpu::BindGroupLayoutEntry {
                binding,
                visibility: ::wgpu::ShaderStages::COMPUTE,
                ty: ::wgpu::BindingType::Buffer {
                    ty: match kind {
                        BindingKind::Uniform => Type::Uniform,
                        BindingKind::Read => Type::Storage { read_only: true },
                        BindingKind::Write => Type::Storage { read_only: false },
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
        let label = Some(spec.entry);
        let (pipeline, layout) = self.scoped(&what, 0, || {
            // SAFETY: our kernels stay within their operands' windows, which the bind groups
            // cover. All their loops end, and they do not divide by 0.
            let module = unsafe {
                self.device.create_shader_module_trusted(
                    ::wgpu::ShaderModuleDescriptor {
                        label,
                        source: ::wgpu::ShaderSource::Wgsl(spec.source.into()),
                    },
                    ::wgpu::ShaderRuntimeChecks::unchecked(),
                )
            };
            let layout = self
                .device
                .create_bind_group_layout(&::wgpu::BindGroupLayoutDescriptor {
                    label,
                    entries: &entries,
                });
            let pipeline_layout =
                self.device
                    .create_pipeline_layout(&::wgpu::PipelineLayoutDescriptor {
                        label,
                        bind_group_layouts: &[Some(&layout)],
                        immediate_size: 0,
                    });
            let pipeline =
                self.device
                    .create_compute_pipeline(&::wgpu::ComputePipelineDescriptor {
                        label,
                        layout: Some(&pipeline_layout),
                        module: &module,
                        entry_point: Some(spec.entry),
                        compilation_options: ::wgpu::PipelineCompilationOptions {
                            constants: &constants,
                            zero_initialize_workgroup_memory: false,
                        },
                        cache: self.cache.as_ref().map(|cache| &cache.cache),
                    });
            (pipeline, layout)
        })?;
        Ok(Arc::new(WgpuPipeline { pipeline, layout }))
    }

    fn save_pipelines(&self) {
        if let Some(cache) = &self.cache {
            cache.save();
        }
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

    fn record(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<Box<dyn Recording>, SeamError> {
        self.scoped("a recording", 0, || self.encode(commands, None))?
    }

    fn record_timed(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<TimedRecording, SeamError> {
        let mut timestamps = Timestamps::new(self)?;
        let recording = self.scoped("a timed recording", 0, || {
            self.encode(commands, Some(&mut timestamps))
        })??;
        let timer = WgpuTimer {
            timestamps,
            device: self.device.clone(),
            period: self.period,
        };
        Ok((recording, Box::new(timer)))
    }

    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError> {
        let mut buffers = Vec::with_capacity(recordings.len());
        for recording in recordings {
            let recording = recording.into_any().downcast::<WgpuRecording>();
            buffers.push(recording.map_err(|_| foreign("recording"))?.0);
        }
        let mut submissions = locked(&self.submissions);
        let index = self.scoped("a submission", 0, || self.queue.submit(buffers))?;
        submissions.indices.push_back(index);
        Ok(Submission(
            submissions.first + submissions.indices.len() as u64 - 1,
        ))
    }

    fn wait(&self, submission: Submission, timeout: Duration) -> Result<bool, SeamError> {
        let index = {
            let submissions = locked(&self.submissions);
            let Some(at) = submission.0.checked_sub(submissions.first) else {
                return Ok(true);
            };
            submissions.indices.get(at as usize).cloned()
        };
        let waited = poll(
            &self.device,
            ::wgpu::PollType::Wait {
                submission_index: index,
                timeout: Some(timeout),
            },
        );
        if let Err(SeamError::Lost { reason }) = &waited {
            locked(&self.lost).get_or_insert_with(|| reason.clone());
        }
        if let Some(reason) = self.lost() {
            return Err(lost(reason));
        }
        if !waited? {
            return Ok(false);
        }
        {
            let mut submissions = locked(&self.submissions);
            while submissions.first <= submission.0 && submissions.indices.pop_front().is_some() {
                submissions.first += 1;
            }
        }
        match locked(&self.errors).take() {
            Some(message) => Err(SeamError::Driver {
                what: "work in flight".to_owned(),
                message,
            }),
            None => Ok(true),
        }
    }

    fn map(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        let mode = if buffer.usage().contains(::wgpu::BufferUsages::MAP_WRITE) {
            ::wgpu::MapMode::Write
        } else {
            ::wgpu::MapMode::Read
        };
        // A failure is reported when the mapped range is requested.
        self.scoped("mapping a buffer", 0, || {
            buffer.slice(..).map_async(mode, |_| {});
        })
    }

    fn unmap(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        self.scoped("unmapping a buffer", 0, || buffer.unmap())
    }

    fn put(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        let end = offset + bytes.len().next_multiple_of(4) as u64;
        if bytes.is_empty() {
            return Ok(());
        }
        let put = guarded(|| {
            let mut view = buffer.slice(offset..end).get_mapped_range_mut()?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
            Ok(())
        })?;
        put.map_err(|error: ::wgpu::MapRangeError| lost(error.to_string()))
    }

    fn get(&self, buffer: &Arc<dyn Buffer>, offset: u64, into: &mut [u8]) -> Result<(), SeamError> {
        let buffer = ours(buffer)?;
        if into.is_empty() {
            return Ok(());
        }
        let start = offset & !7;
        let end = (offset + into.len() as u64).next_multiple_of(4);
        let skip = (offset - start) as usize;
        let got = guarded(|| {
            let view = buffer.slice(start..end).get_mapped_range()?;
            into.copy_from_slice(&view[skip..skip + into.len()]);
            Ok(())
        })?;
        got.map_err(|error: ::wgpu::MapRangeError| lost(error.to_string()))
    }

    fn capture(&self, on: bool) {
        // SAFETY: the queue begins no capture within another, and ends only captures that it began.
        unsafe {
            if on {
                self.device.start_graphics_debugger_capture();
            } else {
                self.device.stop_graphics_debugger_capture();
            }
        }
    }

    fn destroy(&self) {
        self.device.destroy();
        // The callback may come late; without work in flight it comes only at the next poll.
        locked(&self.lost).get_or_insert_with(|| "destroyed".to_owned());
    }
}

impl Drop for WgpuDevice {
    fn drop(&mut self) {
        self.save_pipelines();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn waits_whose_time_runs_out_as_the_work_ends_do_not_lose_the_device() {
        let (_, adapter) = super::super::Instance::new()
            .adapters()
            .pop()
            .expect("the tests need a Vulkan driver, at least a software one");
        let device = adapter
            .0
            .request_device(&::wgpu::DeviceDescriptor::default());
        let (device, queue) = pollster::block_on(device).unwrap();
        let buffer = device.create_buffer(&::wgpu::BufferDescriptor {
            label: None,
            size: 4096,
            usage: ::wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let last = Mutex::new(None);
        let done = AtomicBool::new(false);
        let wait = || {
            while !done.load(Ordering::Relaxed) {
                let Some(index) = locked(&last).clone() else {
                    continue;
                };
                let wait = ::wgpu::PollType::Wait {
                    submission_index: Some(index),
                    timeout: Some(Duration::ZERO),
                };
                if let Err(error) = poll(&device, wait) {
                    done.store(true, Ordering::Relaxed);
                    panic!("{error}");
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(wait);
            }
            for _ in 0..2000 {
                let mut encoder = device.create_command_encoder(&Default::default());
                encoder.clear_buffer(&buffer, 0, None);
                *locked(&last) = Some(queue.submit([encoder.finish()]));
                poll(&device, ::wgpu::PollType::wait_indefinitely()).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
