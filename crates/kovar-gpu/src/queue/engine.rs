//! The engine of a device's queue: commands in the order of the calls, gathered into submissions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::progress::{Failure, InFlight, Mark, Progress, Reported};
use super::ring::Chunk;
use crate::pipelines::Pipelines;
use crate::seam::{BindGroup, Buffer, BufferUse, Command, Device, Pipeline, Recording, SeamError};

/// Sizes and limits of a queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueOptions {
    /// Bytes of an upload chunk, and the largest number of chunks.
    pub long_chunk: u64,
    pub long_chunks: usize,
    /// The same for chunks of parameters and short writes.
    pub short_chunk: u64,
    pub short_chunks: usize,
    /// Bytes of readback buffers that are kept.
    pub readback: u64,
    /// How long a submission may take before waiting for it fails.
    pub timeout: Duration,
    /// The estimated time that a submission of several dispatches stays below, in nanoseconds.
    pub submission_nanoseconds: f64,
    /// The largest number of dispatches in a submission.
    pub submission_dispatches: usize,
    /// Dispatches from which on a program is encoded on several threads.
    pub parallel_dispatches: usize,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            long_chunk: 32 << 20,
            long_chunks: 2,
            short_chunk: 64 << 10,
            short_chunks: 32,
            readback: 32 << 20,
            timeout: Duration::from_secs(120),
            // System watchdogs end work after 2 s at the earliest.
            submission_nanoseconds: 1e8,
            submission_dispatches: 512,
            parallel_dispatches: 2048,
        }
    }
}

/// A command that waits for the next submission.
#[derive(Debug)]
pub(super) enum Pending {
    Dispatch {
        pipeline: Arc<dyn Pipeline>,
        bindings: Arc<dyn BindGroup>,
        workgroups: [u32; 3],
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

impl Pending {
    fn command(&self) -> Command<'_> {
        match self {
            Self::Dispatch {
                pipeline,
                bindings,
                workgroups,
            } => Command::Dispatch {
                pipeline,
                bindings,
                workgroups: *workgroups,
            },
            Self::Copy {
                from,
                from_offset,
                to,
                to_offset,
                len,
            } => Command::Copy {
                from,
                from_offset: *from_offset,
                to,
                to_offset: *to_offset,
                len: *len,
            },
            Self::Clear {
                buffer,
                offset,
                len,
            } => Command::Clear {
                buffer,
                offset: *offset,
                len: *len,
            },
        }
    }
}

/// The number of pending commands from which on they are submitted.
const MAX_PENDING: usize = 256;

/// State under the queue's lock.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub pending: Vec<Pending>,
    /// The chunks that are being filled, by class, and those that are full.
    pub open: [Option<Chunk>; 2],
    pub full: Vec<Chunk>,
    /// Readback buffers that pending commands write.
    pub readbacks: Vec<Arc<dyn Buffer>>,
    /// The number of the last submission, counted from 1.
    pub submitted: u64,
    /// The buffer that end marks are copied from.
    numbers: Option<Arc<dyn Buffer>>,
    /// Parameters of the kernels that move bytes, and the next free slot.
    pub params: Option<Arc<dyn Buffer>>,
    pub next_params: u64,
    /// Whether a capture of the graphics debugger is running.
    pub capturing: bool,
    /// The batches of a launch; kept so that its memory is reused.
    pub batches: Vec<std::ops::Range<usize>>,
}

/// The work of a submission, after the pending commands.
pub(super) enum Work<'a> {
    Commands(&'a mut dyn Iterator<Item = Command<'a>>),
    Recorded(Box<dyn Recording>),
}

#[derive(Debug)]
pub(crate) struct Engine {
    pub(super) device: Arc<dyn Device>,
    pub(super) pipelines: Arc<Pipelines>,
    pub(super) options: QueueOptions,
    order: Mutex<Order>,
    pub(super) progress: Arc<Progress>,
    poller: Option<JoinHandle<()>>,
}

/// The same command with a shorter lifetime, so that it can be chained with others.
fn shorter<'a, 'b: 'a>(command: Command<'b>) -> Command<'a> {
    command
}

/// How many different numbers end marks use. None of them is 0, which fresh memory holds.
const NUMBERS: u64 = 255;

/// An end mark's number.
fn number(turn: u64) -> u32 {
    (turn % NUMBERS + 1) as u32 * 0x0101_0101
}

impl Engine {
    /// # Errors
    /// Those of the operating system if the poll thread cannot be started.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        pipelines: Arc<Pipelines>,
        options: QueueOptions,
    ) -> std::io::Result<Self> {
        // A software device takes about 100 times as long as a usual GPU.
        let scale = if device.caps().software { 100.0 } else { 1.0 };
        let progress = Arc::new(Progress::new(scale));
        let poller = progress.poll(device.clone(), options.timeout)?;
        Ok(Self {
            device,
            pipelines,
            options,
            order: Mutex::default(),
            progress,
            poller: Some(poller),
        })
    }

    /// The lock, whatever the device's state.
    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the queue for a call. After a panic in an earlier call, at most some commands are left
    /// that are submitted with the next ones.
    pub(super) fn enter(&self) -> Result<MutexGuard<'_, Order>, Failure> {
        let order = self.order();
        match self.device.lost() {
            None => Ok(order),
            Some(reason) => {
                self.progress.lose(reason.clone());
                Err(self.failure(&order, "the queue", SeamError::Lost { reason }))
            }
        }
    }

    pub(super) fn failure(&self, order: &Order, what: &'static str, error: SeamError) -> Failure {
        Failure {
            number: order.submitted,
            what,
            error,
        }
    }

    /// Appends a command.
    pub(super) fn push(
        &self,
        order: &mut Order,
        what: &'static str,
        command: Pending,
    ) -> Result<(), Failure> {
        order.pending.push(command);
        if order.pending.len() < MAX_PENDING {
            return Ok(());
        }
        let flushed = self.flush(order, what).map(|_| ());
        if flushed.is_err() {
            // The caller gets the error, so its command is not kept.
            order.pending.pop();
        }
        flushed
    }

    /// Submits the pending commands. Returns the number of the last submission.
    pub(super) fn flush(&self, order: &mut Order, what: &'static str) -> Result<u64, Failure> {
        if order.pending.is_empty() {
            return Ok(order.submitted);
        }
        self.submit(order, what, Work::Commands(&mut std::iter::empty()), 0.0)
    }

    /// Submits the pending commands and `work`, whose time is estimated as `estimate` nanoseconds.
    /// Returns the submission's number. If recording fails, the pending commands stay pending; if
    /// the submission fails, they are dropped, and users that wait for them get the error.
    pub(super) fn submit(
        &self,
        order: &mut Order,
        what: &'static str,
        work: Work<'_>,
        estimate: f64,
    ) -> Result<u64, Failure> {
        let (numbers, mark) = match self.mark(order) {
            Ok(marks) => marks,
            Err(error) => return Err(self.failure(order, what, error)),
        };
        let mut chunks = std::mem::take(&mut order.full);
        for open in &mut order.open {
            chunks.extend(open.take_if(|chunk| chunk.is_used()));
        }
        let readbacks = std::mem::take(&mut order.readbacks);
        let submitted = self.submit_with(order, work, &numbers, &mark, &chunks);
        order.pending.clear();
        let mapped = submitted.and_then(|submission| {
            let buffers = chunks.iter().map(|chunk| &chunk.buffer);
            for buffer in buffers.chain(&readbacks).chain([&mark.buffer]) {
                self.device.map(buffer)?;
            }
            Ok(submission)
        });
        match mapped {
            Ok(submission) => {
                order.submitted += 1;
                self.progress.submitted(InFlight {
                    number: order.submitted,
                    submission,
                    what,
                    mark,
                    chunks,
                    estimate,
                    submitted: Instant::now(),
                });
                Ok(order.submitted)
            }
            Err(error) => {
                // The state of the memory that it would have used is unknown.
                order.numbers = None;
                let mut done = self.progress.lock();
                for chunk in &chunks {
                    done.chunks[chunk.class as usize] -= 1;
                }
                drop(done);
                if let SeamError::Lost { reason } = &error {
                    self.progress.lose(reason.clone());
                }
                order.submitted += 1;
                let failure = self.failure(order, what, error);
                self.progress.refuse(failure.clone());
                Err(failure)
            }
        }
    }

    fn submit_with(
        &self,
        order: &Order,
        work: Work<'_>,
        numbers: &Arc<dyn Buffer>,
        mark: &Mark,
        chunks: &[Chunk],
    ) -> Result<crate::seam::Submission, SeamError> {
        for chunk in chunks {
            self.device.unmap(&chunk.buffer)?;
        }
        let pending = order.pending.iter().map(Pending::command);
        let end = Command::Copy {
            from: numbers,
            from_offset: u64::from(mark.last & 0xff) * 4,
            to: &mark.buffer,
            to_offset: 0,
            len: 4,
        };
        let recordings = match work {
            Work::Commands(commands) => {
                let commands = commands.map(shorter);
                let all = &mut pending.chain(commands).chain([end]);
                vec![self.device.record(all)?]
            }
            Work::Recorded(recording) => {
                let mut recordings = Vec::with_capacity(3);
                if !order.pending.is_empty() {
                    let mut pending = pending;
                    recordings.push(self.device.record(&mut pending)?);
                }
                recordings.push(recording);
                recordings.push(self.device.record(&mut [end].into_iter())?);
                recordings
            }
        };
        self.device.submit(recordings)
    }

    /// The buffer of numbers, and a mark with the number that it will hold next.
    fn mark(&self, order: &mut Order) -> Result<(Arc<dyn Buffer>, Mark), SeamError> {
        let (free, rewrite) = {
            let mut done = self.progress.lock();
            (done.marks.pop(), std::mem::take(&mut done.rewrite))
        };
        let numbers = match &order.numbers {
            Some(numbers) if !rewrite => numbers.clone(),
            _ => self.write_numbers(order)?,
        };
        let mut mark = match free {
            Some(mark) => mark,
            None => Mark {
                buffer: self.device.create_buffer(4, BufferUse::Readback)?,
                last: 0,
            },
        };
        let turn = order.submitted;
        let next = number(turn);
        mark.last = if next == mark.last {
            number(turn + 1)
        } else {
            next
        };
        Ok((numbers, mark))
    }

    /// Creates the buffer of numbers; a first command writes it.
    fn write_numbers(&self, order: &mut Order) -> Result<Arc<dyn Buffer>, SeamError> {
        let bytes = (NUMBERS + 1) * 4;
        let numbers = self.device.create_buffer(bytes, BufferUse::Storage)?;
        let upload = self.device.create_buffer(bytes, BufferUse::Upload)?;
        let words: Vec<u32> = (0..=NUMBERS)
            .map(|turn| turn as u32 * 0x0101_0101)
            .collect();
        self.device.put(&upload, 0, bytemuck::cast_slice(&words))?;
        self.device.unmap(&upload)?;
        order.pending.insert(
            0,
            Pending::Copy {
                from: upload,
                from_offset: 0,
                to: numbers.clone(),
                to_offset: 0,
                len: bytes,
            },
        );
        order.numbers = Some(numbers.clone());
        Ok(numbers)
    }

    /// The point after all work queued so far.
    pub(crate) fn fence(&self) -> Result<u64, Failure> {
        let mut order = self.enter()?;
        self.flush(&mut order, "queued work")
    }

    /// A new user of the queue. It gets the errors from now on.
    pub(crate) fn user(&self) -> Reported {
        self.progress.user()
    }

    /// Waits for the submissions up to `number`, and returns the first error of them.
    pub(crate) fn wait(&self, number: u64, reported: &Reported) -> Result<(), Failure> {
        self.progress.wait(number, reported)
    }

    /// Bytes that the upload ring may take.
    pub(crate) fn upload_ring_bytes(&self) -> usize {
        let options = &self.options;
        options.long_chunk as usize * options.long_chunks
            + options.short_chunk as usize * options.short_chunks
    }

    /// Bytes of readback buffers that are kept.
    pub(crate) fn readback_bytes(&self) -> usize {
        self.options.readback as usize
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.progress.stop();
        if let Some(poller) = self.poller.take() {
            // A panic of the thread has no further effect.
            let _ = poller.join();
        }
    }
}
