//! Launches: a program's dispatches in submissions of bounded time, long ones encoded on several
//! threads while the first part runs.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::engine::{Engine, Order, Pending, Work};
use super::progress::Failure;
use crate::program::Step;
use crate::seam::{Buffer, Command, Device, MAX_TIMED, Recording, SeamError};

/// Dispatches of the first submission of a program that has several.
const FIRST_DISPATCHES: usize = 64;

/// Programs from which on the first submission is a short one, in dispatches.
const EARLY_FROM: usize = 4 * FIRST_DISPATCHES;

/// Submissions that may be in flight before the next one waits, where the caller may break off.
const AHEAD: u64 = 2;

/// What a launch runs.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub steps: &'a [Step],
    /// Where the run's scalars go, and they.
    pub scalars: Option<(&'a Arc<dyn Buffer>, &'a [i32])>,
}

/// The device time of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub step: usize,
    /// Nanoseconds on a clock of the device.
    pub start: u64,
    pub end: u64,
}

fn command(step: &Step) -> Command<'_> {
    Command::Dispatch {
        pipeline: &step.pipeline,
        bindings: &step.bindings,
        workgroups: step.workgroups,
    }
}

fn estimate(steps: &[Step]) -> f64 {
    steps.iter().map(|step| step.nanoseconds).sum()
}

/// Cuts steps into submissions of at most `dispatches` dispatches, and of several only where
/// they stay under `nanoseconds`.
fn cut(steps: &[Step], dispatches: usize, nanoseconds: f64, parts: &mut Vec<Range<usize>>) {
    parts.clear();
    let mut start = 0;
    let mut time = 0.0;
    for (at, step) in steps.iter().enumerate() {
        let early = steps.len() >= EARLY_FROM && parts.is_empty();
        let most = match early {
            true => FIRST_DISPATCHES.min(dispatches),
            false => dispatches,
        };
        if at > start && (at - start >= most || time + step.nanoseconds > nanoseconds) {
            parts.push(start..at);
            (start, time) = (at, 0.0);
        }
        time += step.nanoseconds;
    }
    if start < steps.len() {
        parts.push(start..steps.len());
    }
}

impl Engine {
    /// Queues a run. With `go_on`, asks before each submission whether to, and lets few of them
    /// be in flight; whether all was queued.
    pub(crate) fn launch(
        &self,
        launch: Launch<'_>,
        mut go_on: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<bool, Failure> {
        let mut order = self.enter()?;
        self.place_scalars(&mut order, launch)?;
        let scale = self.progress.lock().scale().max(1e-6);
        let mut parts = std::mem::take(&mut order.parts);
        let options = &self.options;
        let nanoseconds = options.submission_nanoseconds / scale;
        cut(
            launch.steps,
            options.submission_dispatches,
            nanoseconds,
            &mut parts,
        );
        let all = match go_on.is_none() && launch.steps.len() >= options.parallel_dispatches {
            true => self
                .launch_parallel(&mut order, launch.steps, &parts)
                .map(|()| true),
            false => self.launch_parts(&mut order, launch.steps, &parts, &mut go_on),
        };
        order.parts = parts;
        all
    }

    fn launch_parts(
        &self,
        order: &mut Order,
        steps: &[Step],
        parts: &[Range<usize>],
        go_on: &mut Option<&mut dyn FnMut() -> bool>,
    ) -> Result<bool, Failure> {
        for part in parts {
            if let Some(go_on) = go_on {
                // Waiting shows errors of earlier work too; they stay for whoever waits for it.
                let behind = order.submitted.saturating_sub(AHEAD);
                self.progress.wait_and_look(behind)?;
                if !go_on() {
                    return Ok(false);
                }
            }
            let steps = &steps[part.clone()];
            let commands = &mut steps.iter().map(command);
            self.submit(order, "a launch", Work::Commands(commands), estimate(steps))?;
        }
        Ok(true)
    }

    /// Encodes the parts on several threads, and submits them in order.
    fn launch_parallel(
        &self,
        order: &mut Order,
        steps: &[Step],
        parts: &[Range<usize>],
    ) -> Result<(), Failure> {
        let Some((first, _)) = parts.split_first() else {
            return Ok(());
        };
        let threads = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(4);
        let encoding = Encoding {
            device: self.device.as_ref(),
            steps,
            parts,
            next: AtomicUsize::new(1),
            recorded: Mutex::new((0..parts.len()).map(|_| None).collect()),
            changed: Condvar::new(),
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(parts.len()) {
                scope.spawn(|| while encoding.encode_next() {});
            }
            let now = &steps[first.clone()];
            let commands = &mut now.iter().map(command);
            let mut submitted =
                self.submit(order, "a launch", Work::Commands(commands), estimate(now));
            for (at, part) in parts.iter().enumerate().skip(1) {
                if submitted.is_err() {
                    break;
                }
                submitted = match encoding.take(at) {
                    Ok(recording) => {
                        let time = estimate(&steps[part.clone()]);
                        self.submit(order, "a launch", Work::Recorded(recording), time)
                    }
                    Err(error) => Err(self.failure(order, "a launch", error)),
                };
            }
            // After a failure, what has not been encoded need not be.
            encoding.next.store(parts.len(), Ordering::Relaxed);
            submitted.map(|_| ())
        })
    }

    /// Appends a copy of the scalars to where the program reads them.
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
        let mut times = Vec::with_capacity(launch.steps.len());
        let most = MAX_TIMED.min(self.options.submission_dispatches.max(1));
        for steps in launch.steps.chunks(most) {
            let failed = |error| Failure {
                number: 0,
                what: "a timed launch",
                error,
            };
            let recorded = self.device.record_timed(&mut steps.iter().map(command));
            let (recording, timer) = recorded.map_err(failed)?;
            let work = Work::Recorded(recording);
            let number = self.submit(&mut order, "a timed launch", work, estimate(steps))?;
            self.progress.wait_and_look(number)?;
            let first = times.len();
            let read = timer.read().map_err(failed)?;
            times.extend(
                read.into_iter()
                    .enumerate()
                    .map(|(at, (start, end))| Timed {
                        step: first + at,
                        start,
                        end,
                    }),
            );
        }
        Ok(times)
    }

    /// Waits for what is queued, then has the graphics debugger that is attached, if one is,
    /// capture what follows. `false` if it does already.
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

    /// Waits for what is queued, and ends the capture whether or not that went well.
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

/// Parts of a program that threads encode.
struct Encoding<'a> {
    device: &'a dyn Device,
    steps: &'a [Step],
    parts: &'a [Range<usize>],
    /// The next part to encode.
    next: AtomicUsize,
    recorded: Mutex<Vec<Option<Recorded>>>,
    changed: Condvar,
}

type Recorded = Result<Box<dyn Recording>, SeamError>;

impl Encoding<'_> {
    /// Encodes the next part; `false` if there is none.
    fn encode_next(&self) -> bool {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = self.parts.get(at) else {
            return false;
        };
        let recorded = self
            .device
            .record(&mut self.steps[part.clone()].iter().map(command));
        self.lock()[at] = Some(recorded);
        self.changed.notify_all();
        true
    }

    /// The recording of a part; encodes others, or waits, until it is there.
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
