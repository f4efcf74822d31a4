//! How fast a backend runs a case.

use std::time::{Duration, Instant};

use kovar_core::backend::Backend;
use serde::Serialize;

use crate::cases::Case;
use crate::harness::{Failure, Operands, Placement, compile, unsupported};

/// The time of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Launches that were timed.
    pub runs: usize,
    /// The time of one launch in microseconds, the median of batches.
    pub microseconds: f64,
    /// The same of the fastest batch.
    pub fastest_microseconds: f64,
    /// Bytes read and written per nanosecond, as the operation's cost counts them: each distinct
    /// byte once.
    pub gigabytes_per_second: f64,
    /// Operations per nanosecond, a multiply-add counted as two; 0 for operations that only move
    /// data.
    pub gigaflops_per_second: f64,
    /// The kernels that ran.
    pub kernels: Vec<&'static str>,
}

/// Whether a case could be timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Measurement {
    /// It ran.
    Measured(Timing),
    /// It did not.
    Failed {
        /// Why.
        reason: String,
    },
    /// The backend does not support it.
    Unsupported {
        /// Why.
        reason: String,
    },
}

/// Batches that are timed.
const BATCHES: usize = 7;
/// The shortest time of a batch, so that the cost of the clock and the wait is negligible.
const BATCH: Duration = Duration::from_millis(20);

/// Times a case: launches in batches, one wait for each batch, operands already on the device.
pub fn measure(backend: &dyn Backend, case: &Case) -> Measurement {
    match try_measure(backend, case) {
        Ok(measurement) => measurement,
        Err(failure) => Measurement::Failed {
            reason: failure.to_string(),
        },
    }
}

fn try_measure(backend: &dyn Backend, case: &Case) -> Result<Measurement, Failure> {
    let setup = case.setup()?;
    if let Some(reason) = unsupported(backend, &setup.graph) {
        return Ok(Measurement::Unsupported { reason });
    }
    let initial = setup.initial_bytes(&case.name())?;
    let placement = Placement::new(backend, &setup, &initial, Operands::Allocated)?;
    let program = compile(backend, &setup.graph, &placement)?;
    placement.upload(backend)?;
    let queue = backend.queue();
    let batch = |launches: usize| -> Result<Duration, Failure> {
        let start = Instant::now();
        for _ in 0..launches {
            queue.launch(program.as_ref(), &setup.scalars)?;
        }
        queue.wait(queue.fence()?)?;
        Ok(start.elapsed())
    };
    batch(1)?;
    let mut launches = 1;
    while batch(launches)? < BATCH {
        launches *= 2;
    }
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        times.push(batch(launches)?.as_secs_f64() / launches as f64);
    }
    times.sort_by(f64::total_cmp);
    let (mut flops, mut bytes) = (0, 0);
    for node in setup.graph.node_refs() {
        let cost = node.cost();
        flops += cost.flops;
        bytes += cost.bytes_read + cost.bytes_written;
    }
    let median = times[BATCHES / 2];
    Ok(Measurement::Measured(Timing {
        runs: launches * BATCHES,
        microseconds: median * 1e6,
        fastest_microseconds: times[0] * 1e6,
        gigabytes_per_second: bytes as f64 / median / 1e9,
        gigaflops_per_second: flops as f64 / median / 1e9,
        kernels: program.kernels(),
    }))
}
