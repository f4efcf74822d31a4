//! Tools to show that a backend of kovar is right: a slow f64 [`oracle`] that shares no code with
//! any backend, tables of [`cases`] for each operation, a [`harness`] that runs a case with
//! poisoned outputs and guard bands around all memory, error [`metrics`] with their [`limits`],
//! [`synthetic`] data, and [`simulated`] devices that refuse foreign memory.
//!
//! ```
//! use kovar_testkit::simulated::SimulatedDevice;
//! use kovar_testkit::suite::{Filter, run_tests};
//!
//! let device = SimulatedDevice::default();
//! let report = run_tests(&device, &Filter::op("scale"), &mut |_| {});
//! assert_eq!(report.failures().count(), 0);
//! ```

#![forbid(unsafe_code)]

pub mod cases;
pub mod harness;
pub mod limits;
pub mod metrics;
pub mod oracle;
pub mod perf;
pub mod restricted;
pub mod simulated;
pub mod suite;
pub mod synthetic;
mod tensor;

pub use tensor::{Elements, TensorData, TensorError, read_value, write_value};
