//! The thread pool: it distributes the chunks of one job at a time to its threads.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::machine;

/// How long a thread spins for the next job, or for the last chunks of its own job, before it
/// parks. It covers the serial work between two products of a model (a few microseconds). It is
/// short compared with a scheduler's time slice, so other processes soon get a core that they need.
const SPIN: Duration = Duration::from_micros(40);

/// Pauses between two readings of the clock while spinning.
const PAUSES_PER_CHECK: u32 = 16;

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A pool of no threads was requested.
    #[error("a thread pool needs at least one thread")]
    NoThreads,
    /// More threads than [`max_threads`] were requested.
    #[error("{n_threads} threads are too many for one pool: at most {most}")]
    TooManyThreads {
        /// Threads requested.
        n_threads: usize,
        /// The most threads.
        most: usize,
    },
    /// The system refused to start a worker thread.
    #[error("cannot start worker {worker} of {n_threads} threads")]
    Spawn {
        /// Index of the worker.
        worker: usize,
        /// Threads requested.
        n_threads: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The most threads that a pool may have: 256, or 8 for each core that the process may use,
/// whichever is more. With far more threads than cores, threads only wait for each other. A system
/// without further threads may end the process while a thread starts, where no error can be
/// returned.
pub fn max_threads() -> usize {
    const LEAST: usize = 256;
    const PER_CORE: usize = 8;
    LEAST.max(machine::usable_threads().saturating_mul(PER_CORE))
}

/// A fixed set of threads that run the chunks of one job at a time.
///
/// The thread that calls [`run`](ThreadPool::run) takes part, so a pool of `n` threads starts
/// `n - 1` workers. Threads take chunks one by one, so a thread that other processes slow down
/// takes fewer of them. Idle workers spin for some tens of microseconds and then park.
pub struct ThreadPool {
    state: Arc<PoolState>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the thread whose job is running.
    running: Mutex<()>,
}

/// The state that a pool's threads share, on cache lines (or pairs of them) of its own: spinning
/// workers would slow down every write of the caller to a line that they read.
#[repr(align(128))]
struct PoolState {
    /// The current job's generation (upper half) and its next chunk (lower half; all ones while
    /// the fields below are being written). Both are in one word, so that a late worker cannot
    /// claim a chunk of a job that it has not read.
    ticket: AtomicU64,
    /// The job: trampoline, closure and chunk count. A worker may read these while the next job
    /// is being written; it uses them only after a claim has shown that they were current.
    call: AtomicPtr<()>,
    closure: AtomicPtr<()>,
    n_chunks: AtomicUsize,
    /// Chunks of the current job that have not finished.
    unfinished: AtomicUsize,
    /// A chunk of the current job panicked; the rest are skipped.
    panicked: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,

    /// The number of parked workers, and whether the caller is parked.
    sleepers: AtomicUsize,
    caller_sleeps: AtomicBool,
    stop: AtomicBool,
    gate: Mutex<()>,
    work_ready: Condvar,
    work_done: Condvar,
}

type Call = unsafe fn(*const (), usize, usize);

/// Runs one chunk of the closure that `closure` points to.
///
/// # Safety
/// `closure` points to a live `F`.
unsafe fn call_chunk<F: Fn(usize, usize) + Sync>(closure: *const (), chunk: usize, worker: usize) {
    // SAFETY: by this function's contract.
    let closure = unsafe { &*closure.cast::<F>() };
    closure(chunk, worker);
}

const CHUNK_MASK: u64 = u32::MAX as u64;

fn generation(ticket: u64) -> u64 {
    ticket >> 32
}

/// The guard of `mutex` even if a thread panicked while holding it: none of the pool's mutexes
/// guards data that a panic could leave half-written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spins until `ready`, at most for [`SPIN`]; returns whether it became ready.
fn spin_until(ready: impl Fn() -> bool) -> bool {
    for _ in 0..PAUSES_PER_CHECK {
        if ready() {
            return true;
        }
        std::hint::spin_loop();
    }
    let start = Instant::now();
    loop {
        for _ in 0..PAUSES_PER_CHECK {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= SPIN {
            return ready();
        }
    }
}

impl PoolState {
    fn new() -> Self {
        Self {
            ticket: AtomicU64::new(0),
            call: AtomicPtr::new(std::ptr::null_mut()),
            closure: AtomicPtr::new(std::ptr::null_mut()),
            n_chunks: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            caller_sleeps: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            gate: Mutex::new(()),
            work_ready: Condvar::new(),
            work_done: Condvar::new(),
        }
    }

    /// Takes chunks of the current job until none is left.
    fn work(&self, worker: usize) {
        loop {
            let ticket = self.ticket.load(Ordering::Acquire);
            let chunk = (ticket & CHUNK_MASK) as usize;
            let call = self.call.load(Ordering::Acquire);
            let closure = self.closure.load(Ordering::Acquire);
            if chunk >= self.n_chunks.load(Ordering::Acquire) {
                return;
            }
            // The claim succeeds only if the ticket is still the one read above. The fields of
            // the next job are written after the ticket was closed, and a load that sees one of
            // them makes the claim see the closed ticket; so if the claim succeeds, the values
            // read belong to its job.
            if self
                .ticket
                .compare_exchange_weak(ticket, ticket + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            if !self.panicked.load(Ordering::Relaxed) {
                // SAFETY: `call` was made from a `Call` in `ThreadPool::run`.
                let call = unsafe { std::mem::transmute::<*mut (), Call>(call) };
                // SAFETY: the chunk was claimed and has not finished, so `run` has not returned
                // and the closure that it borrows is alive; `call` is its trampoline.
                let result =
                    catch_unwind(AssertUnwindSafe(|| unsafe { call(closure, chunk, worker) }));
                if let Err(payload) = result {
                    self.panicked.store(true, Ordering::Relaxed);
                    lock(&self.panic).get_or_insert(payload);
                }
            }
            if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                // Pairs with the fence in `wait`: either this sees the caller's flag or the
                // caller sees that nothing is unfinished.
                fence(Ordering::SeqCst);
                if self.caller_sleeps.load(Ordering::Relaxed) {
                    drop(lock(&self.gate));
                    self.work_done.notify_all();
                }
            }
        }
    }

    /// Waits until every chunk has finished.
    fn wait(&self) {
        let done = || self.unfinished.load(Ordering::Acquire) == 0;
        if spin_until(done) {
            return;
        }
        let mut guard = lock(&self.gate);
        self.caller_sleeps.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !done() {
            guard = self
                .work_done
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_sleeps.store(false, Ordering::Relaxed);
    }

    /// The loop of a worker.
    fn serve(&self, worker: usize) {
        let mut seen = 0;
        loop {
            let fresh = || {
                generation(self.ticket.load(Ordering::Acquire)) != seen
                    || self.stop.load(Ordering::Relaxed)
            };
            if !spin_until(fresh) {
                let mut guard = lock(&self.gate);
                self.sleepers.fetch_add(1, Ordering::Relaxed);
                // Pairs with the fence in `publish`.
                fence(Ordering::SeqCst);
                while !fresh() {
                    guard = self
                        .work_ready
                        .wait(guard)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            seen = generation(self.ticket.load(Ordering::Acquire));
            self.work(worker);
        }
    }

    fn publish(&self, call: Call, closure: *const (), n_chunks: usize) {
        let next = self.ticket.load(Ordering::Relaxed).wrapping_add(1 << 32) & !CHUNK_MASK;
        self.ticket.store(next | CHUNK_MASK, Ordering::Relaxed);
        self.call.store(call as *mut (), Ordering::Release);
        self.closure.store(closure.cast_mut(), Ordering::Release);
        self.n_chunks.store(n_chunks, Ordering::Release);
        self.unfinished.store(n_chunks, Ordering::Relaxed);
        self.ticket
            .store(next.wrapping_add(1 << 32), Ordering::Release);
        // Pairs with the fence in `serve`: either a worker about to park sees the ticket or this
        // sees the worker among the sleepers.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(lock(&self.gate));
            if n_chunks == 2 {
                self.work_ready.notify_one();
            } else {
                self.work_ready.notify_all();
            }
        }
    }
}

thread_local! {
    /// The pool whose chunk this thread is running.
    static INSIDE: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// Marks the thread as running a pool's chunks until it is dropped.
struct Inside(*const ());

impl Inside {
    fn enter(state: *const PoolState) -> Self {
        Self(INSIDE.replace(state.cast()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

impl ThreadPool {
    /// A pool in which `n_threads` threads work, the caller of [`run`](Self::run) among them.
    ///
    /// # Errors
    /// [`PoolError::NoThreads`] for 0, [`PoolError::TooManyThreads`] beyond [`max_threads`],
    /// [`PoolError::Spawn`] if the system refuses a thread.
    pub fn new(n_threads: usize) -> Result<Self, PoolError> {
        if n_threads == 0 {
            return Err(PoolError::NoThreads);
        }
        let most = max_threads();
        if n_threads > most {
            return Err(PoolError::TooManyThreads { n_threads, most });
        }
        let mut pool = Self {
            state: Arc::new(PoolState::new()),
            workers: Vec::with_capacity(n_threads - 1),
            running: Mutex::new(()),
        };
        for worker in 1..n_threads {
            let state = pool.state.clone();
            let handle = Builder::new()
                .name(format!("kovar-cpu-{worker}"))
                .spawn(move || {
                    let _inside = Inside::enter(Arc::as_ptr(&state));
                    state.serve(worker);
                })
                .map_err(|source| PoolError::Spawn {
                    worker,
                    n_threads,
                    source,
                })?;
            pool.workers.push(handle);
        }
        Ok(pool)
    }

    /// Threads that work on a job, the caller's included.
    pub fn n_threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `chunk_fn(chunk, worker)` once for every `chunk < n_chunks` and returns when all have
    /// finished. `worker < n_threads()` identifies the thread: two calls at the same time never
    /// have the same `worker`, so it can index scratch memory.
    ///
    /// Called from inside a chunk of the same pool, or while another thread's job runs, it runs
    /// all chunks on the calling thread as worker 0. Nothing is allocated.
    ///
    /// # Panics
    /// If a chunk panics, the remaining chunks are skipped, and the first panic resumes in the
    /// caller after every running chunk has ended. The pool can be used again. More than 2^32 - 1
    /// chunks panic too.
    pub fn run<F: Fn(usize, usize) + Sync>(&self, n_chunks: usize, chunk_fn: &F) {
        let inline = || (0..n_chunks).for_each(|chunk| chunk_fn(chunk, 0));
        if n_chunks <= 1 || self.workers.is_empty() || self.is_inside() {
            return inline();
        }
        assert!(n_chunks < u32::MAX as usize, "{n_chunks} chunks in one job");
        let _running = match self.running.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            Err(TryLockError::WouldBlock) => return inline(),
        };
        let _inside = Inside::enter(Arc::as_ptr(&self.state));
        let state = &*self.state;
        state.publish(
            call_chunk::<F>,
            std::ptr::from_ref(chunk_fn).cast(),
            n_chunks,
        );
        state.work(0);
        state.wait();
        if state.panicked.swap(false, Ordering::Relaxed) {
            let payload = lock(&state.panic).take();
            drop(_running);
            resume_unwind(payload.unwrap_or_else(|| Box::new("a chunk panicked")));
        }
    }

    /// Splits `0..len` into ranges of at least `grain` elements, a few per thread, and calls
    /// `range_fn(range, worker)` for each as [`run`](Self::run) does.
    pub fn run_ranges<F>(&self, len: usize, grain: usize, range_fn: &F)
    where
        F: Fn(std::ops::Range<usize>, usize) + Sync,
    {
        const CHUNKS_PER_THREAD: usize = 4;
        let most = self.n_threads() * CHUNKS_PER_THREAD;
        let n_chunks = (len / grain.max(1)).clamp(1, most);
        if self.n_threads() == 1 || n_chunks == 1 {
            if len > 0 {
                range_fn(0..len, 0);
            }
            return;
        }
        self.run(n_chunks, &|chunk, worker| {
            let bound = |i: usize| (i as u128 * len as u128 / n_chunks as u128) as usize;
            range_fn(bound(chunk)..bound(chunk + 1), worker);
        });
    }

    fn is_inside(&self) -> bool {
        INSIDE.get() == Arc::as_ptr(&self.state).cast()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        drop(lock(&self.state.gate));
        self.state.work_ready.notify_all();
        for worker in self.workers.drain(..) {
            // A worker's panics were caught and resumed in the caller.
            let _ = worker.join();
        }
    }
}

/// A pointer that the chunks of a job share; each chunk writes its own elements.
pub(crate) struct ChunkPtr<T>(*mut T, std::marker::PhantomData<UnsafeCell<T>>);

// SAFETY: it is only an address; code that dereferences it argues that no two chunks access the
// same elements.
unsafe impl<T: Send> Send for ChunkPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ChunkPtr<T> {}

impl<T> ChunkPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(pointer, std::marker::PhantomData)
    }

    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn counts(pool: &ThreadPool, n_chunks: usize) -> Vec<u32> {
        let seen: Vec<AtomicU32> = (0..n_chunks).map(|_| AtomicU32::new(0)).collect();
        pool.run(n_chunks, &|chunk, worker| {
            assert!(worker < pool.n_threads());
            seen[chunk].fetch_add(1, Ordering::Relaxed);
        });
        seen.into_iter().map(AtomicU32::into_inner).collect()
    }

    #[test]
    fn every_chunk_runs_exactly_once() {
        for n_threads in [1, 2, 3] {
            let pool = ThreadPool::new(n_threads).unwrap();
            for n_chunks in [0, 1, 2, 3, 7, 64, 1000] {
                assert!(counts(&pool, n_chunks).iter().all(|&n| n == 1));
            }
        }
    }

    #[test]
    fn no_threads_is_an_error() {
        assert!(matches!(ThreadPool::new(0), Err(PoolError::NoThreads)));
    }

    #[test]
    fn too_many_threads_are_an_error_before_any_starts() {
        let n_threads = max_threads() + 1;
        let error = ThreadPool::new(n_threads).err();
        let most = n_threads - 1;
        assert!(
            matches!(error, Some(PoolError::TooManyThreads { n_threads: n, most: m })
                if n == n_threads && m == most),
            "{error:?}"
        );
    }

    #[test]
    fn thousands_of_tiny_runs_finish_with_the_right_sum() {
        let pool = ThreadPool::new(2).unwrap();
        let sum = AtomicUsize::new(0);
        for _ in 0..20_000 {
            pool.run(3, &|chunk, _| {
                sum.fetch_add(chunk + 1, Ordering::Relaxed);
            });
        }
        assert_eq!(sum.into_inner(), 20_000 * 6);
    }

    #[test]
    fn more_threads_than_cores_finish() {
        let pool = ThreadPool::new(8).unwrap();
        for _ in 0..500 {
            assert!(counts(&pool, 16).iter().all(|&n| n == 1));
        }
    }

    #[test]
    fn a_run_after_the_workers_parked_finishes() {
        let pool = ThreadPool::new(3).unwrap();
        for _ in 0..20 {
            std::thread::sleep(SPIN * 20);
            assert!(counts(&pool, 5).iter().all(|&n| n == 1));
        }
    }

    #[test]
    fn the_caller_parks_while_a_long_chunk_runs() {
        let pool = ThreadPool::new(2).unwrap();
        let finished = AtomicUsize::new(0);
        pool.run(4, &|chunk, _| {
            std::thread::sleep(Duration::from_millis(2 * chunk as u64));
            finished.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(finished.into_inner(), 4);
    }

    #[test]
    fn a_nested_run_stays_on_its_thread() {
        let pool = ThreadPool::new(2).unwrap();
        let sum = AtomicUsize::new(0);
        pool.run(4, &|_, _| {
            let outer = std::thread::current().id();
            pool.run(5, &|chunk, worker| {
                assert_eq!(std::thread::current().id(), outer);
                assert_eq!(worker, 0);
                sum.fetch_add(chunk, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 4 * 10);
    }

    #[test]
    fn callers_at_the_same_time_all_finish() {
        let pool = ThreadPool::new(2).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        assert!(counts(&pool, 9).iter().all(|&n| n == 1));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_stays_usable() {
        for n_threads in [1, 2, 4] {
            let pool = ThreadPool::new(n_threads).unwrap();
            for bad in 0..8 {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    pool.run(8, &|chunk, _| assert_ne!(chunk, bad, "chunk is bad"));
                }));
                let payload = result.unwrap_err();
                let message = payload.downcast_ref::<String>().unwrap();
                assert!(message.contains("chunk is bad"));
                assert!(counts(&pool, 8).iter().all(|&n| n == 1));
            }
        }
    }

    #[test]
    fn ranges_cover_the_length_without_overlap() {
        let pool = ThreadPool::new(2).unwrap();
        for (len, grain) in [(0, 4), (1, 4), (17, 4), (1000, 1), (1000, 2000)] {
            let seen: Vec<AtomicU32> = (0..len).map(|_| AtomicU32::new(0)).collect();
            pool.run_ranges(len, grain, &|range, _| {
                for i in range {
                    seen[i].fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }
}
