//! What has been submitted and what has ended, kept by the device's one poll thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ring::{Chunk, Class};
use crate::seam::{Buffer, Device, SeamError, Submission};

/// Errors are remembered up to this many.
const MAX_FAILURES: usize = 64;

/// A word on the host that a submission writes at its end.
#[derive(Debug)]
pub(super) struct Mark {
    pub buffer: Arc<dyn Buffer>,
    /// The number that it held last.
    pub last: u32,
}

/// A submission that has not ended.
#[derive(Debug)]
pub(super) struct InFlight {
    pub number: u64,
    pub submission: Submission,
    pub what: &'static str,
    /// The mark with the number that the submission writes.
    pub mark: Mark,
    /// Upload memory that is free again after it.
    pub chunks: Vec<Chunk>,
    /// Estimated nanoseconds.
    pub estimate: f64,
    pub submitted: Instant,
}

/// An error of work in flight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub number: u64,
    pub what: &'static str,
    pub error: SeamError,
}

/// The errors that were reported to a user of the queue. Each is reported to each user once.
#[derive(Debug)]
pub(crate) struct Reported {
    /// The number of errors before this user was added.
    before: u64,
    since: Mutex<Vec<u64>>,
}

impl Reported {
    fn contains(&self, error: u64) -> bool {
        error < self.before || self.lock().contains(&error)
    }

    fn add(&self, error: u64) {
        let mut since = self.lock();
        since.push(error);
        // Errors that old are no longer kept either.
        if since.len() > 2 * MAX_FAILURES {
            since.drain(..MAX_FAILURES);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State that the poll thread and the queue's users share.
#[derive(Debug, Default)]
pub(super) struct Done {
    in_flight: VecDeque<InFlight>,
    /// All submissions up to this number have ended.
    ended: u64,
    /// The last errors, numbered from the first one on.
    failures: VecDeque<(u64, Failure)>,
    /// The number of errors so far.
    failed: u64,
    /// The last submission that could not be queued, if it follows all in flight.
    refused: u64,
    lost: Option<String>,
    /// The number of time-outs of submissions, and the last of them.
    stalls: u64,
    stalled: Option<Failure>,
    /// Upload chunks that may be filled, by class. They are mapped.
    pub free: [Vec<Chunk>; 2],
    /// Upload chunks that exist, by class.
    pub chunks: [usize; 2],
    pub marks: Vec<Mark>,
    /// Whether failed work may have overwritten the numbers that marks are copied from.
    pub rewrite: bool,
    /// Readback buffers that are not in use. They are unmapped.
    pub readbacks: Vec<Arc<dyn Buffer>>,
    /// Measured time of submissions, as a multiple of the estimate.
    scale: f64,
    /// When the last submission ended.
    last_end: Option<Instant>,
    stop: bool,
}

#[derive(Debug)]
pub(super) struct Progress {
    done: Mutex<Done>,
    changed: Condvar,
}

impl Progress {
    /// `scale` is the first guess of the measured time as a multiple of the estimate.
    pub fn new(scale: f64) -> Self {
        Self {
            done: Mutex::new(Done {
                scale,
                ..Done::default()
            }),
            changed: Condvar::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the poll thread of a device. It ends after [`stop`](Self::stop), once no work is in
    /// flight.
    pub fn poll(
        self: &Arc<Self>,
        device: Arc<dyn Device>,
        timeout: Duration,
    ) -> std::io::Result<JoinHandle<()>> {
        let progress = self.clone();
        let name = "kovar-gpu-poll".to_owned();
        thread::Builder::new()
            .name(name)
            .spawn(move || progress.run(device.as_ref(), timeout))
    }

    pub fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Hands a submission to the poll thread.
    pub fn submitted(&self, work: InFlight) {
        self.lock().in_flight.push_back(work);
        self.changed.notify_all();
    }

    /// A new user. It gets the errors from now on.
    pub fn user(&self) -> Reported {
        Reported {
            before: self.lock().failed,
            since: Mutex::default(),
        }
    }

    /// Records a submission that failed before it was queued.
    pub fn refuse(&self, failure: Failure) {
        let mut done = self.lock();
        done.refused = failure.number;
        if done.in_flight.is_empty() {
            done.ended = done.ended.max(failure.number);
        }
        done.note(failure);
        drop(done);
        self.changed.notify_all();
    }

    /// Waits until the submissions up to `number` have ended. Returns their first error that was
    /// not yet reported to the user.
    pub fn wait(&self, number: u64, reported: &Reported) -> Result<(), Failure> {
        self.wait_ended(number)?.report(number, reported)
    }

    /// Waits like [`wait`](Self::wait) for the bytes that the submission `number` copies to the
    /// host. Returns an error of that submission even if it was already reported to the user.
    pub fn wait_for_bytes(&self, number: u64, reported: &Reported) -> Result<(), Failure> {
        let done = self.wait_ended(number)?;
        let own = done.failures.iter().find(|(_, f)| f.number == number);
        if let Some((error, failure)) = own {
            reported.add(*error);
            return Err(failure.clone());
        }
        done.report(number, reported)
    }

    /// Waits like [`wait`](Self::wait). Returns an error of the submission `number`, which does not
    /// count as reported.
    pub fn wait_and_look(&self, number: u64) -> Result<(), Failure> {
        let done = self.wait_ended(number)?;
        let own = done.failures.iter().find(|(_, f)| f.number == number);
        own.map_or(Ok(()), |(_, failure)| Err(failure.clone()))
    }

    fn wait_ended(&self, number: u64) -> Result<MutexGuard<'_, Done>, Failure> {
        let mut done = self.lock();
        let stalls = done.stalls;
        loop {
            done.check_lost(number)?;
            if done.ended >= number {
                return Ok(done);
            }
            if done.stalls != stalls
                && let Some(stalled) = &done.stalled
            {
                return Err(stalled.clone());
            }
            done = self.sleep(done);
        }
    }

    /// A free chunk of a class, once there is one.
    pub fn wait_chunk(&self, class: Class) -> Result<Chunk, Failure> {
        let mut done = self.lock();
        let stalls = done.stalls;
        loop {
            done.check_lost(done.ended)?;
            if let Some(chunk) = done.free[class as usize].pop() {
                return Ok(chunk);
            }
            if done.stalls != stalls
                && let Some(stalled) = &done.stalled
            {
                return Err(stalled.clone());
            }
            done = self.sleep(done);
        }
    }

    fn sleep<'a>(&self, done: MutexGuard<'a, Done>) -> MutexGuard<'a, Done> {
        self.changed
            .wait(done)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, device: &dyn Device, timeout: Duration) {
        let mut began = Instant::now();
        let mut front = 0;
        loop {
            let (number, submission) = {
                let mut done = self.lock();
                loop {
                    if let Some(work) = done.in_flight.front() {
                        break (work.number, work.submission);
                    }
                    if done.stop {
                        return;
                    }
                    done = self.sleep(done);
                }
            };
            if number != front {
                (front, began) = (number, Instant::now());
            }
            // One long wait instead of many short ones: an assertion in wgpu fails if another
            // thread finds the work done just after a wait times out.
            let left = timeout.saturating_sub(began.elapsed());
            match device.wait(submission, left.max(Duration::from_millis(1))) {
                Ok(true) => self.end(device, None),
                Ok(false) if began.elapsed() < timeout => {}
                Ok(false) => {
                    let mut done = self.lock();
                    let what = done.in_flight.front().map_or("work", |work| work.what);
                    done.stalls += 1;
                    done.stalled = Some(Failure {
                        number,
                        what,
                        error: SeamError::TimedOut {
                            seconds: timeout.as_secs_f64(),
                        },
                    });
                    began = Instant::now();
                    let stop = done.stop;
                    drop(done);
                    self.changed.notify_all();
                    if stop {
                        return;
                    }
                }
                Err(SeamError::Lost { reason }) => self.lose(reason),
                Err(error) => self.end(device, Some(error)),
            }
        }
    }

    /// Records that the first submission in flight has ended.
    fn end(&self, device: &dyn Device, error: Option<SeamError>) {
        let Some(mut work) = self.lock().in_flight.pop_front() else {
            return;
        };
        let now = Instant::now();
        let mut found = [0; 4];
        let read = device.get(&work.mark.buffer, 0, &mut found);
        let error = error.or_else(|| match read {
            Ok(()) if u32::from_le_bytes(found) == work.mark.last => None,
            Ok(()) => Some(SeamError::Unfinished),
            Err(error) => Some(error),
        });
        let reusable = device.unmap(&work.mark.buffer).is_ok();
        work.mark.last = u32::from_le_bytes(found);
        let lost = device.lost();
        let mut done = self.lock();
        done.measure(&work, now);
        for chunk in work.chunks.drain(..) {
            done.free[chunk.class as usize].push(chunk.emptied());
        }
        if reusable {
            done.marks.push(work.mark);
        }
        if let Some(error) = error {
            done.rewrite = true;
            let failure = Failure {
                number: work.number,
                what: work.what,
                error,
            };
            done.note(failure);
        }
        done.ended = done.ended.max(work.number);
        if done.in_flight.is_empty() {
            done.ended = done.ended.max(done.refused);
        }
        done.lost = done.lost.take().or(lost);
        drop(done);
        self.changed.notify_all();
    }

    /// Records that the device is lost. No work in flight will end.
    pub fn lose(&self, reason: String) {
        let mut done = self.lock();
        done.lost.get_or_insert(reason);
        done.in_flight.clear();
        drop(done);
        self.changed.notify_all();
    }
}

impl Done {
    fn check_lost(&self, number: u64) -> Result<(), Failure> {
        match &self.lost {
            None => Ok(()),
            Some(reason) => Err(Failure {
                number,
                what: "the queue",
                error: SeamError::Lost {
                    reason: reason.clone(),
                },
            }),
        }
    }

    fn note(&mut self, failure: Failure) {
        self.failures.push_back((self.failed, failure));
        self.failed += 1;
        if self.failures.len() > MAX_FAILURES {
            self.failures.pop_front();
        }
    }

    /// Reports the first error up to `number` that was not yet reported to the user.
    fn report(&self, number: u64, reported: &Reported) -> Result<(), Failure> {
        let mut failures = self.failures.iter();
        let unreported =
            failures.find(|(error, f)| f.number <= number && !reported.contains(*error));
        unreported.map_or(Ok(()), |(error, failure)| {
            reported.add(*error);
            Err(failure.clone())
        })
    }

    /// Measured time of submissions, as a multiple of the estimate.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    fn measure(&mut self, work: &InFlight, now: Instant) {
        /// Below this many nanoseconds, the wait itself is most of the measured time.
        const SHORTEST: f64 = 200_000.0;
        /// The weight of a new measurement in the scale.
        const WEIGHT: f64 = 0.3;
        let began = self
            .last_end
            .map_or(work.submitted, |end| end.max(work.submitted));
        self.last_end = Some(now);
        let measured = now.saturating_duration_since(began).as_nanos() as f64;
        if work.estimate > 0.0 && measured.max(work.estimate * self.scale) > SHORTEST {
            let ratio = (measured / work.estimate).clamp(1e-3, 1e4);
            self.scale += WEIGHT * (ratio - self.scale);
        }
    }
}
