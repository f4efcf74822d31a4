//! The machine's memory read bandwidth, measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::buffer::{AlignedBytes, OutOfHostMemory};
use crate::pool::ThreadPool;

/// Bytes read per pass: well beyond the caches that a few cores have to themselves.
const BUFFER_BYTES: usize = 256 << 20;

/// Bytes of one chunk.
const CHUNK_BYTES: usize = 1 << 20;

const PASSES: usize = 8;

/// The best rate, in bytes per second, at which the pool's threads read a 256 MiB buffer.
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
    for _ in 0..PASSES {
        let start = Instant::now();
        pool.run(BUFFER_BYTES / CHUNK_BYTES, &|chunk, _| {
            let part = &words[chunk * words_per_chunk..][..words_per_chunk];
            let mut lanes = [0u64; 32];
            for group in part.chunks_exact(lanes.len()) {
                for (lane, word) in lanes.iter_mut().zip(group) {
                    *lane = lane.wrapping_add(*word);
                }
            }
            let total = lanes.iter().fold(0u64, |a, b| a.wrapping_add(*b));
            sum.fetch_add(total, Ordering::Relaxed);
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    std::hint::black_box(sum.into_inner());
    Ok(BUFFER_BYTES as f64 / best)
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
