//! A device without a GPU, for tests. Its memory is the host's. It runs only the kernels that move
//! bytes, fails on demand, and checks that its users keep the seam's rules.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use kovar_core::HostBytes;

use super::{
    BindGroup, Buffer, BufferRange, BufferUse, Caps, Command, Device, Imported, MemoryBudget,
    Pipeline, PipelineSpec, Recording, SeamError, Submission, TimedRecording,
};
use crate::kernel::Features;

/// A pipeline that was requested.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub entry: String,
    pub source: String,
    pub constants: Vec<(&'static str, u32)>,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Null {
    caps: Caps,
    /// Bytes of buffers that exist.
    live: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Submissions whose work has not been done.
    queued: VecDeque<Vec<Owned>>,
    ended: u64,
    /// How many submissions may end.
    released: u64,
    /// Buffers to map, each with the number of submissions that must have ended.
    maps: Vec<(u64, Arc<NullBuffer>)>,
    /// The entry points of the kernels of each submission.
    log: Vec<Vec<String>>,
    asked: BTreeSet<Asked>,
    /// How many pipelines were made.
    pipelines: usize,
    capacity: u64,
    lost: Option<String>,
    /// A submission that the driver forgets to run.
    forgotten: Option<u64>,
}

#[derive(Debug)]
struct NullBuffer {
    bytes: Mutex<Vec<u8>>,
    usage: BufferUse,
    mapped: AtomicBool,
    live: Arc<AtomicU64>,
}

impl Drop for NullBuffer {
    fn drop(&mut self) {
        self.live.fetch_sub(self.len(), Ordering::Relaxed);
    }
}

impl Buffer for NullBuffer {
    fn len(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct NullPipeline(String);

impl Pipeline for NullPipeline {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Clone, Debug)]
struct NullBindGroup(Vec<BufferRange>);

impl BindGroup for NullBindGroup {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct NullRecording(Vec<Owned>);

impl Recording for NullRecording {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A command with what it uses.
#[derive(Debug)]
enum Owned {
    Dispatch {
        kernel: String,
        ranges: Vec<BufferRange>,
        invocations: u64,
    },
    Copy {
        from: Arc<dyn Buffer>,
        from_offset: u64,
        to: Arc<dyn Buffer>,
        to_offset: u64,
        len: u64,
    },
    Clear {
        buffer: Arc<dyn Buffer>,
        offset: u64,
        len: u64,
    },
}

fn null(buffer: &Arc<dyn Buffer>) -> &NullBuffer {
    buffer.as_any().downcast_ref().unwrap()
}

fn bytes(buffer: &Arc<dyn Buffer>) -> MutexGuard<'_, Vec<u8>> {
    null(buffer).bytes.lock().unwrap()
}

fn invalid(message: &str) -> SeamError {
    SeamError::Driver {
        what: "the null device".to_owned(),
        message: message.to_owned(),
    }
}

impl Owned {
    fn buffers(&self) -> Vec<&Arc<dyn Buffer>> {
        match self {
            Self::Dispatch { ranges, .. } => ranges.iter().map(|range| &range.buffer).collect(),
            Self::Copy { from, to, .. } => vec![from, to],
            Self::Clear { buffer, .. } => vec![buffer],
        }
    }

    fn run(&self) {
        match self {
            Self::Copy {
                from,
                from_offset,
                to,
                to_offset,
                len,
            } => {
                let copied = bytes(from)[*from_offset as usize..][..*len as usize].to_vec();
                bytes(to)[*to_offset as usize..][..*len as usize].copy_from_slice(&copied);
            }
            Self::Clear {
                buffer,
                offset,
                len,
            } => bytes(buffer)[*offset as usize..][..*len as usize].fill(0),
            Self::Dispatch {
                kernel,
                ranges,
                invocations,
            } => match kernel.as_str() {
                "bytes_fill" => fill(ranges, *invocations),
                "bytes_copy" => copy(ranges, *invocations),
                _ => {}
            },
        }
    }
}

fn words(range: &BufferRange) -> Vec<u32> {
    let Range { start, end } = range.bytes.clone();
    bytemuck::pod_collect_to_vec(&bytes(&range.buffer)[start as usize..end as usize])
}

/// `bytes_fill.wgsl`.
fn fill(ranges: &[BufferRange], invocations: u64) {
    let params = words(&ranges[0]);
    let mut out = words(&ranges[1]);
    let (n, value, at) = (params[0], params[1], params[4]);
    assert!(u64::from(n) <= invocations);
    for i in 0..n {
        let first = if i == 0 { params[2] } else { u32::MAX };
        let last = if i == n - 1 { params[3] } else { u32::MAX };
        let word = &mut out[(at + i) as usize];
        *word = (*word & !(first & last)) | (value & first & last);
    }
    store(&ranges[1], &out);
}

/// `bytes_copy.wgsl`.
fn copy(ranges: &[BufferRange], invocations: u64) {
    let params = words(&ranges[0]).into_iter().map(|word| word as usize);
    let [n, at, skew, len, source] = params.take(5).collect::<Vec<_>>()[..] else {
        panic!("five parameters");
    };
    assert!(n as u64 <= invocations && (skew + len).div_ceil(4) == n);
    let from: Vec<u8> = bytemuck::pod_collect_to_vec(&words(&ranges[2]));
    let mut out: Vec<u8> = bytemuck::pod_collect_to_vec(&words(&ranges[1]));
    out[at * 4 + skew..][..len].copy_from_slice(&from[source..][..len]);
    store(&ranges[1], &bytemuck::pod_collect_to_vec::<u8, u32>(&out));
}

fn store(range: &BufferRange, words: &[u32]) {
    let to = range.bytes.start as usize;
    bytes(&range.buffer)[to..to + words.len() * 4].copy_from_slice(bytemuck::cast_slice(words));
}

impl Null {
    /// A small device.
    pub(crate) fn new() -> Arc<Self> {
        Self::with_caps(
            Caps {
                name: "null".to_owned(),
                driver: "null 1".to_owned(),
                features: Features::SUBGROUPS,
                subgroup_sizes: (8, 8),
                matrices: Vec::new(),
                binding_alignment: 16,
                // So that the kernels that move bytes work in parts.
                max_binding_bytes: 512,
                max_buffer_bytes: 1 << 20,
                max_workgroups: 65_535,
                max_workgroup_size: 256,
                workgroup_bytes: 16 << 10,
                unified_memory: false,
                memory_bytes: Some(4 << 20),
                timestamps: false,
                imports_host: false,
                software: false,
            },
            4 << 20,
        )
    }

    /// A device with room for `capacity` bytes.
    pub(crate) fn with_caps(caps: Caps, capacity: u64) -> Arc<Self> {
        Arc::new(Self {
            caps,
            live: Arc::default(),
            state: Mutex::new(State {
                queued: VecDeque::new(),
                ended: 0,
                released: u64::MAX,
                maps: Vec::new(),
                log: Vec::new(),
                asked: BTreeSet::new(),
                pipelines: 0,
                capacity,
                lost: None,
                forgotten: None,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// From now on, holds all submissions back or lets them end.
    pub(crate) fn hold(&self, hold: bool) {
        let mut state = self.state();
        state.released = if hold {
            state.ended + state.queued.len() as u64
        } else {
            u64::MAX
        };
    }

    /// Makes the next submission end without its work.
    pub(crate) fn forget_next(&self) {
        let mut state = self.state();
        state.forgotten = Some(state.ended + state.queued.len() as u64);
    }

    pub(crate) fn lose(&self, reason: &str) {
        self.state().lost = Some(reason.to_owned());
    }

    /// Bytes of buffers that exist.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// The pipelines that were requested.
    pub(crate) fn asked(&self) -> BTreeSet<Asked> {
        self.state().asked.clone()
    }

    /// How many pipelines were made.
    pub(crate) fn pipelines(&self) -> usize {
        self.state().pipelines
    }

    /// The entry points of the kernels of each submission.
    pub(crate) fn log(&self) -> Vec<Vec<String>> {
        self.state().log.clone()
    }
}

impl State {
    fn advance(&mut self) {
        while self.ended < self.released
            && let Some(commands) = self.queued.pop_front()
        {
            if self.forgotten != Some(self.ended) {
                commands.iter().for_each(Owned::run);
            }
            self.ended += 1;
        }
        let ended = self.ended;
        self.maps.retain(|(after, buffer)| {
            let now = *after <= ended;
            if now {
                buffer.mapped.store(true, Ordering::Relaxed);
            }
            !now
        });
    }

    fn check_lost(&self) -> Result<(), SeamError> {
        match self.lost.clone() {
            Some(reason) => Err(SeamError::Lost { reason }),
            None => Ok(()),
        }
    }
}

impl Device for Null {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn memory_budget(&self) -> Option<MemoryBudget> {
        Some(MemoryBudget {
            budget: self.state().capacity,
            used: self.live(),
        })
    }

    fn lost(&self) -> Option<String> {
        self.state().lost.clone()
    }

    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError> {
        self.state().check_lost()?;
        let size = bytes.next_multiple_of(4).max(4);
        let capacity = self.state().capacity;
        if bytes > self.caps.max_buffer_bytes || self.live() + size > capacity {
            return Err(SeamError::OutOfMemory { bytes });
        }
        self.live.fetch_add(size, Ordering::Relaxed);
        Ok(Arc::new(NullBuffer {
            bytes: Mutex::new(vec![0; size as usize]),
            usage,
            mapped: AtomicBool::new(usage == BufferUse::Upload),
            live: self.live.clone(),
        }))
    }

    fn import(&self, _: &HostBytes) -> Option<Imported> {
        None
    }

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError> {
        let mut state = self.state();
        state.check_lost()?;
        state.pipelines += 1;
        state.asked.insert(Asked {
            entry: spec.entry.to_owned(),
            source: spec.source.to_owned(),
            constants: spec.constants.to_vec(),
        });
        Ok(Arc::new(NullPipeline(spec.entry.to_owned())))
    }

    fn save_pipelines(&self) {}

    fn create_bind_group(
        &self,
        _: &Arc<dyn Pipeline>,
        ranges: &[BufferRange],
    ) -> Result<Arc<dyn BindGroup>, SeamError> {
        for range in ranges {
            let Range { start, end } = range.bytes;
            let aligned = start.is_multiple_of(self.caps.binding_alignment);
            let inside = start < end && end <= range.buffer.len();
            let fits = end - start <= self.caps.max_binding_bytes;
            if !aligned || !inside || !fits || !end.is_multiple_of(4) {
                return Err(invalid("a binding's range"));
            }
        }
        Ok(Arc::new(NullBindGroup(ranges.to_vec())))
    }

    fn record(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<Box<dyn Recording>, SeamError> {
        self.state().check_lost()?;
        let whole = |positions: &[u64]| {
            let whole = positions.iter().all(|p| p.is_multiple_of(4));
            whole
                .then_some(())
                .ok_or_else(|| invalid("a part of a word"))
        };
        let mut owned = Vec::new();
        for command in commands {
            owned.push(match command {
                Command::Dispatch {
                    pipeline,
                    bindings,
                    workgroups,
                } => {
                    let pipeline: &NullPipeline = pipeline.as_any().downcast_ref().unwrap();
                    let bindings: &NullBindGroup = bindings.as_any().downcast_ref().unwrap();
                    Owned::Dispatch {
                        kernel: pipeline.0.clone(),
                        ranges: bindings.0.clone(),
                        invocations: workgroups.iter().map(|&n| u64::from(n)).product::<u64>()
                            * 256,
                    }
                }
                Command::Copy {
                    from,
                    from_offset,
                    to,
                    to_offset,
                    len,
                } => {
                    whole(&[from_offset, to_offset, len])?;
                    if std::ptr::addr_eq(Arc::as_ptr(from), Arc::as_ptr(to)) {
                        return Err(invalid("a copy within a buffer"));
                    }
                    if from_offset + len > from.len() || to_offset + len > to.len() {
                        return Err(invalid("a copy outside a buffer"));
                    }
                    Owned::Copy {
                        from: from.clone(),
                        from_offset,
                        to: to.clone(),
                        to_offset,
                        len,
                    }
                }
                Command::Clear {
                    buffer,
                    offset,
                    len,
                } => {
                    whole(&[offset, len])?;
                    Owned::Clear {
                        buffer: buffer.clone(),
                        offset,
                        len,
                    }
                }
            });
        }
        Ok(Box::new(NullRecording(owned)))
    }

    fn record_timed(
        &self,
        _: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<TimedRecording, SeamError> {
        Err(invalid("no timestamps"))
    }

    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError> {
        let mut state = self.state();
        state.check_lost()?;
        let mut commands = Vec::new();
        for recording in recordings {
            let recording = recording.into_any().downcast::<NullRecording>();
            commands.extend(recording.ok().unwrap().0);
        }
        let mut buffers = commands.iter().flat_map(Owned::buffers);
        if buffers.any(|buffer| null(buffer).mapped.load(Ordering::Relaxed)) {
            return Err(invalid("a mapped buffer is used"));
        }
        let kernel = |command: &Owned| match command {
            Owned::Dispatch { kernel, .. } => Some(kernel.clone()),
            _ => None,
        };
        state.log.push(commands.iter().filter_map(kernel).collect());
        state.queued.push_back(commands);
        Ok(Submission(state.ended + state.queued.len() as u64 - 1))
    }

    fn wait(&self, submission: Submission, timeout: Duration) -> Result<bool, SeamError> {
        let began = Instant::now();
        loop {
            let mut state = self.state();
            state.check_lost()?;
            state.advance();
            if state.ended > submission.0 {
                return Ok(true);
            }
            drop(state);
            if began.elapsed() >= timeout {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn map(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        if !matches!(null(buffer).usage, BufferUse::Upload | BufferUse::Readback) {
            return Err(invalid("a buffer that cannot be mapped"));
        }
        let any: Arc<dyn Any + Send + Sync> = buffer.clone();
        let buffer = any.downcast::<NullBuffer>().ok().unwrap();
        let mut state = self.state();
        let after = state.ended + state.queued.len() as u64;
        state.maps.push((after, buffer));
        state.advance();
        Ok(())
    }

    fn unmap(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        let was_mapped = null(buffer).mapped.swap(false, Ordering::Relaxed);
        was_mapped
            .then_some(())
            .ok_or_else(|| invalid("not mapped"))
    }

    fn put(&self, buffer: &Arc<dyn Buffer>, offset: u64, from: &[u8]) -> Result<(), SeamError> {
        let mapped = null(buffer).mapped.load(Ordering::Relaxed);
        if !mapped || !offset.is_multiple_of(8) {
            return Err(invalid("a write of a buffer that is not mapped"));
        }
        bytes(buffer)[offset as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn get(&self, buffer: &Arc<dyn Buffer>, offset: u64, into: &mut [u8]) -> Result<(), SeamError> {
        if !null(buffer).mapped.load(Ordering::Relaxed) {
            return Err(invalid("a read of a buffer that is not mapped"));
        }
        into.copy_from_slice(&bytes(buffer)[offset as usize..][..into.len()]);
        Ok(())
    }

    fn capture(&self, _: bool) {}

    fn destroy(&self) {
        self.lose("destroyed");
    }
}
