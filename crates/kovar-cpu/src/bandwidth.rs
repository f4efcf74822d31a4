//! Measurement of the machine's memory read bandwidth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::buffer::{AlignedBytes, OutOfHostMemory};
use crate::pool::ThreadPool;

/// Bytes of the buffer: much more than the private caches of a few cores.
const BUFFER_BYTES: usize = 256 << 20;

/// Bytes timed at once: a window takes about a millisecond, so most pass without an interruption.
const WINDOW_BYTES: usize = 32 << 20;

/// Bytes of one chunk.
const CHUNK_BYTES: usize = 1 << 20;

const PASSES: usize = 6;

/// The rate, in bytes per second, at which the pool's threads read memory: the best 32 MiB window
/// of several passes over a 256 MiB buffer.
///
/// # Errors
/// [`OutOfHostMemory`] if the buffer cannot be allocated.
pub fn measure_read_bandwidth(pool: &ThreadPool) -> Result<f64, OutOfHostMemory> {
    let mut buffer = AlignedBytes::zeroed(BUFFER_BYTES)?;
    // Untouched zero pages may all be one physical page.
    for page in buffer.as_mut_slice().chunks_mut(4096) {
        page[0] = 1;
    }
    let words: &[u64] = bytemuck::cast_slice(buffer.as_slice());
    let words_per_chunk = CHUNK_BYTES / size_of::<u64>();
    let sum = AtomicU64::new(0);
    let mut best = f64::INFINITY;
    let windows = words.chunks_exact(WINDOW_BYTES / size_of::<u64>());
    for window in std::iter::repeat_n(windows, PASSES).flatten() {
        let start = Instant::now();
        pool.run(WINDOW_BYTES / CHUNK_BYTES, &|chunk, _| {
            let words = &window[chunk * words_per_chunk..][..words_per_chunk];
            // Several streams at once: one alone does not keep enough reads in flight.
            let (first, second) = words.split_at(words.len() / 2);
            let streams = [first, second].map(|half| half.split_at(half.len() / 2));
            let mut lanes = [[0u64; 4]; 4];
            for i in 0..words_per_chunk / 16 {
                let [(a, b), (c, d)] = streams;
                for (lanes, stream) in lanes.iter_mut().zip([a, b, c, d]) {
                    for (lane, word) in lanes.iter_mut().zip(&stream[4 * i..4 * i + 4]) {
                        *lane = lane.wrapping_add(*word);
                    }
                }
            }
            let total = lanes
                .as_flattened()
                .iter()
                .fold(0u64, |a, b| a.wrapping_add(*b));
            sum.fetch_add(total, Ordering::Relaxed);
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    std::hint::black_box(sum.into_inner());
    Ok(WINDOW_BYTES as f64 / best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_positive_and_finite() {
        let pool = ThreadPool::new(2).unwrap();
        let rate = measure_read_bandwidth(&pool).unwrap();
        assert!(rate.is_finite() && rate > 1e8, "{rate} bytes/s");
    }
}
