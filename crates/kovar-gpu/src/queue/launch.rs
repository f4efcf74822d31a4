//! Launches: a program's dispatches in submissions of bounded time. Long programs are encoded on
//! several threads while the first submission runs.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::engine::{Engine, Order, Pending, Work};
use super::progress::Failure;
use crate::program::BoundDispatch;
use crate::seam::{Buffer, Command, Device, MAX_TIMED, Recording, SeamError};

/// Dispatches of the first submission of a program that has several.
const FIRST_DISPATCHES: usize = 64;

/// Dispatches from which on a program's first submission is a short one.
const EARLY_FROM: usize = 4 * FIRST_DISPATCHES;

/// The number of submissions that may be in flight in a launch that the caller may break off.
const AHEAD: u64 = 2;

/// The work of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub dispatches: &'a [BoundDispatch],
    /// The buffer of the run's scalars, and their values.
    pub scalars: Option<(&'a Arc<dyn Buffer>, &'a [i32])>,
}

/// The device time of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub dispatch: usize,
    /// Nanoseconds on a clock of the device.
    pub start: u64,
    pub end: u64,
}

fn command(dispatch: &BoundDispatch) -> Command<'_> {
    Command::Dispatch {
        pipeline: &dispatch.pipeline,
        bindings: &dispatch.bindings,
        workgroups: dispatch.workgroups,
    }
}

fn estimate(dispatches: &[BoundDispatch]) -> f64 {
    dispatches.iter().map(|dispatch| dispatch.nanoseconds).sum()
}

/// Cuts dispatches into batches, one for each submission: of at most `most` dispatches, and of
/// several only where their estimated time is below `nanoseconds`.
fn cut(
    dispatches: &[BoundDispatch],
    most: usize,
    nanoseconds: f64,
    batches: &mut Vec<Range<usize>>,
) {
    batches.clear();
    let mut start = 0;
    let mut time = 0.0;
    for (at, dispatch) in dispatches.iter().enumerate() {
        let early = dispatches.len() >= EARLY_FROM && batches.is_empty();
        let most = if early {
            FIRST_DISPATCHES.min(most)
        } else {
            most
        };
        if at > start && (at - start >= most || time + dispatch.nanoseconds > nanoseconds) {
            batches.push(start..at);
            (start, time) = (at, 0.0);
        }
        time += dispatch.nanoseconds;
    }
    if start < dispatches.len() {
        batches.push(start..dispatches.len());
    }
}

impl Engine {
    /// Queues a run. With `go_on`, calls it before each submission, stops once it returns `false`,
    /// and keeps few submissions in flight. Returns whether all dispatches were queued.
    pub(crate) fn launch(
        &self,
        launch: Launch<'_>,
        mut go_on: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<bool, Failure> {
        let mut order = self.enter()?;
        self.place_scalars(&mut order, launch)?;
        let scale = self.progress.lock().scale().max(1e-6);
        let mut batches = std::mem::take(&mut order.batches);
        let options = &self.options;
        let nanoseconds = options.submission_nanoseconds / scale;
        cut(
            launch.dispatches,
            options.submission_dispatches,
            nanoseconds,
            &mut batches,
        );
        let long = launch.dispatches.len() >= options.parallel_dispatches;
        let all = if go_on.is_none() && long {
            let launched = self.launch_parallel(&mut order, launch.dispatches, &batches);
            launched.map(|()| true)
        } else {
            self.launch_batches(&mut order, launch.dispatches, &batches, &mut go_on)
        };
        order.batches = batches;
        all
    }

    fn launch_batches(
        &self,
        order: &mut Order,
        dispatches: &[BoundDispatch],
        batches: &[Range<usize>],
        go_on: &mut Option<&mut dyn FnMut() -> bool>,
    ) -> Result<bool, Failure> {
        for batch in batches {
            if let Some(go_on) = go_on {
                // The wait also meets errors of earlier work. They stay for the user that waits for
                // that work.
                let earlier = order.submitted.saturating_sub(AHEAD);
                self.progress.wait_and_look(earlier)?;
                if !go_on() {
                    return Ok(false);
                }
            }
            let dispatches = &dispatches[batch.clone()];
            let commands = &mut dispatches.iter().map(command);
            self.submit(
                order,
                "a launch",
                Work::Commands(commands),
                estimate(dispatches),
            )?;
        }
        Ok(true)
    }

    /// Encodes the batches on several threads and submits them in order.
    fn launch_parallel(
        &self,
        order: &mut Order,
        dispatches: &[BoundDispatch],
        batches: &[Range<usize>],
    ) -> Result<(), Failure> {
        let Some((first, _)) = batches.split_first() else {
            return Ok(());
        };
        let threads = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(4);
        let encoding = Encoding {
            device: self.device.as_ref(),
            dispatches,
            batches,
            next: AtomicUsize::new(1),
            recorded: Mutex::new((0..batches.len()).map(|_| None).collect()),
            changed: Condvar::new(),
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(batches.len()) {
                scope.spawn(|| while encoding.encode_next() {});
            }
            let now = &dispatches[first.clone()];
            let commands = &mut now.iter().map(command);
            let mut submitted =
                self.submit(order, "a launch", Work::Commands(commands), estimate(now));
            for (at, batch) in batches.iter().enumerate().skip(1) {
                if submitted.is_err() {
                    break;
                }
                submitted = match encoding.take(at) {
                    Ok(recording) => {
                        let time = estimate(&dispatches[batch.clone()]);
                        self.submit(order, "a launch", Work::Recorded(recording), time)
                    }
                    Err(error) => Err(self.failure(order, "a launch", error)),
                };
            }
            // After a failure, the remaining batches need no encoding.
            encoding.next.store(batches.len(), Ordering::Relaxed);
            submitted.map(|_| ())
        })
    }

    /// Appends a copy of the scalars to the buffer that the program reads them from.
    fn place_scalars(&self, order: &mut Order, launch: Launch<'_>) -> Result<(), Failure> {
        let Some((to, scalars)) = launch.scalars else {
            return Ok(());
        };
        let mut bytes: &[u8] = bytemuck::cast_slice(scalars);
        let mut to_offset = 0;
        while !bytes.is_empty() {
            let staged = self.stage(order, bytes)?;
            let copy = Pending::Copy {
                from: staged.buffer,
                from_offset: staged.offset,
                to: to.clone(),
                to_offset,
                len: staged.len as u64,
            };
            self.push(order, "a launch", copy)?;
            to_offset += staged.len as u64;
            bytes = &bytes[staged.len..];
        }
        Ok(())
    }

    /// Runs a program with the time of each dispatch measured, and waits for it.
    pub(crate) fn launch_timed(&self, launch: Launch<'_>) -> Result<Vec<Timed>, Failure> {
        let mut order = self.enter()?;
        self.place_scalars(&mut order, launch)?;
        let mut times = Vec::with_capacity(launch.dispatches.len());
        let most = MAX_TIMED.min(self.options.submission_dispatches.max(1));
        for dispatches in launch.dispatches.chunks(most) {
            let failed = |error| Failure {
                number: 0,
                what: "a timed launch",
                error,
            };
            let recorded = self
                .device
                .record_timed(&mut dispatches.iter().map(command));
            let (recording, timer) = recorded.map_err(failed)?;
            let work = Work::Recorded(recording);
            let number = self.submit(&mut order, "a timed launch", work, estimate(dispatches))?;
            self.progress.wait_and_look(number)?;
            let first = times.len();
            let read = timer.read().map_err(failed)?;
            times.extend(
                read.into_iter()
                    .enumerate()
                    .map(|(at, (start, end))| Timed {
                        dispatch: first + at,
                        start,
                        end,
                    }),
            );
        }
        Ok(times)
    }

    /// Waits for the queued work, then begins a capture of the attached graphics debugger, if there
    /// is one. Returns `false` if a capture is already running.
    pub(crate) fn start_capture(&self) -> Result<bool, Failure> {
        let mut order = self.enter()?;
        if order.capturing {
            return Ok(false);
        }
        let before = self.flush(&mut order, "queued work")?;
        self.progress.wait_and_look(before)?;
        order.capturing = true;
        self.device.capture(true);
        Ok(true)
    }

    /// Waits for the queued work and ends the capture, even if the work failed.
    pub(crate) fn stop_capture(&self) -> Result<(), Failure> {
        let mut order = self.order();
        let ended = self
            .flush(&mut order, "captured work")
            .and_then(|last| self.progress.wait_and_look(last));
        self.device.capture(false);
        order.capturing = false;
        ended
    }
}

/// Batches of a program that threads encode.
struct Encoding<'a> {
    device: &'a dyn Device,
    dispatches: &'a [BoundDispatch],
    batches: &'a [Range<usize>],
    /// The next batch to encode.
    next: AtomicUsize,
    recorded: Mutex<Vec<Option<Recorded>>>,
    changed: Condvar,
}

type Recorded = Result<Box<dyn Recording>, SeamError>;

impl Encoding<'_> {
    /// Encodes the next batch; `false` if there is none.
    fn encode_next(&self) -> bool {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(batch) = self.batches.get(at) else {
            return false;
        };
        let recorded = self
            .device
            .record(&mut self.dispatches[batch.clone()].iter().map(command));
        self.lock()[at] = Some(recorded);
        self.changed.notify_all();
        true
    }

    /// The recording of a batch. Until it is there, encodes other batches or waits.
    fn take(&self, at: usize) -> Recorded {
        loop {
            if let Some(recorded) = self.lock()[at].take() {
                return recorded;
            }
            if self.encode_next() {
                continue;
            }
            let mut all = self.lock();
            while all[at].is_none() {
                all = self
                    .changed
                    .wait(all)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Recorded>>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
