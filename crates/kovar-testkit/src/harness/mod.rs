//! Runs a case on a backend and compares everything that it left in memory with the oracle.
//!
//! Weights go through `prepare`. Every other storage lies between guard bands of a known pattern:
//! temporaries and outputs together in one arena, as the runtime has them, inputs and states in
//! buffers of their own. Bytes that no fill covers are 0xFF, NaN in every float dtype. After a run
//! all buffers are read back: results are compared, and every byte that is not part of a result
//! must be unchanged. Then everything is set up again and the same program runs a second time: it
//! must leave the same bytes.

mod check;
mod placement;

use std::sync::Arc;

use kovar_core::backend::{Backend, Program, Segment, Support};
use kovar_core::error::{DeviceError, GraphError};
use kovar_core::{Graph, NodeId};
use serde::Serialize;

use crate::cases::{Case, Setup};
use crate::metrics::Comparison;
use crate::oracle::OracleError;
use crate::tensor::TensorError;
pub(crate) use placement::Placement;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Within the limits, and nothing else touched.
    Passed {
        /// The error to the oracle; the largest if there are several results.
        nmse: f64,
        /// The ratio of the error to its limit, from 0 to 1; the largest if there are several
        /// results.
        limit_share: f64,
    },
    /// Wrong.
    Failed {
        /// In which way.
        #[serde(serialize_with = "as_text")]
        reason: Failure,
    },
    /// The backend does not support it.
    Unsupported {
        /// Why.
        reason: String,
    },
}

/// In which way a case failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A result too far from the oracle.
    #[error("{}", describe_error(op, comparison, *limit, *same_activations))]
    Error {
        /// The operation.
        op: &'static str,
        /// The distance to the plain oracle.
        comparison: Box<Comparison>,
        /// The largest NMSE allowed.
        limit: f64,
        /// For a product that may quantise its activations, the NMSE to the oracle fed the same.
        same_activations: Option<f64>,
    },
    /// A byte of a guard band that changed.
    #[error(
        "wrote out of bounds: byte {} of storage `{storage}` ({bytes} bytes) is {found:#04x}, it was {before:#04x}",
        position
    )]
    GuardBand {
        /// The nearest storage.
        storage: String,
        /// Its size.
        bytes: usize,
        /// The byte, counted from the start of the storage.
        position: isize,
        /// What it was.
        before: u8,
        /// What it is.
        found: u8,
    },
    /// A byte of a written storage that no node may write.
    #[error(
        "touched what it must leave: byte {position} of storage `{storage}` is {found:#04x}, it was {before:#04x}"
    )]
    Untouched {
        /// The storage.
        storage: String,
        /// The byte, counted from its start.
        position: usize,
        /// What it was.
        before: u8,
        /// What it is.
        found: u8,
    },
    /// A byte of a storage that the nodes only read.
    #[error(
        "changed an operand: byte {position} of storage `{storage}` is {found:#04x}, it was {before:#04x}"
    )]
    InputChanged {
        /// The storage.
        storage: String,
        /// The byte, counted from its start.
        position: usize,
        /// What it was.
        before: u8,
        /// What it is.
        found: u8,
    },
    /// A second run of the same program on the same data that left other bytes.
    #[error(
        "a second run differs: byte {position} of storage `{storage}` is {found:#04x}, it was {first:#04x}"
    )]
    Replay {
        /// The storage.
        storage: String,
        /// The byte, counted from its start.
        position: usize,
        /// What the first run left.
        first: u8,
        /// What the second run left.
        found: u8,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The case is broken.
    #[error("the case is broken: {0}")]
    Graph(#[from] GraphError),
    /// The oracle has no answer.
    #[error("no oracle: {0}")]
    Oracle(#[from] OracleError),
    /// The case's data does not fit its graph.
    #[error("the case is broken: {0}")]
    Tensor(#[from] TensorError),
}

fn describe_error(
    op: &str,
    comparison: &Comparison,
    limit: f64,
    same_activations: Option<f64>,
) -> String {
    let worst = &comparison.worst_absolute;
    let same = same_activations.map_or(String::new(), |nmse| {
        format!(", {nmse:.3e} to the oracle with 8-bit activations")
    });
    format!(
        "{op}: NMSE {:.3e} is above {limit:.3e}{same}; the worst element, at {:?}, is {} and should be {}",
        comparison.nmse, worst.index, worst.actual, worst.expected
    )
}

fn as_text<S: serde::Serializer>(failure: &Failure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(failure)
}

/// How storages that no node writes come to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operands {
    /// Weights are prepared from host memory of any alignment, the rest is allocated and written.
    #[default]
    Allocated,
    /// Weights are prepared from odd addresses, where tensors of a mapped file may lie, and the
    /// rest is imported from such.
    Imported,
}

/// Runs a case twice and compares.
pub fn run_case(backend: &dyn Backend, case: &Case, operands: Operands) -> Outcome {
    let outcome = case
        .setup()
        .map_err(Failure::from)
        .and_then(|setup| run_setup_on(backend, &setup, &case.name(), operands));
    outcome.unwrap_or_else(|reason| Outcome::Failed { reason })
}

/// Runs a setup twice and compares; the data follow from `name`.
pub fn run_setup(backend: &dyn Backend, setup: &Setup, name: &str) -> Result<Outcome, Failure> {
    run_setup_on(backend, setup, name, Operands::Allocated)
}

fn run_setup_on(
    backend: &dyn Backend,
    setup: &Setup,
    name: &str,
    operands: Operands,
) -> Result<Outcome, Failure> {
    if let Some(reason) = unsupported(backend, &setup.graph) {
        return Ok(Outcome::Unsupported { reason });
    }
    let initial = setup.initial_bytes(name)?;
    let placement = Placement::new(backend, setup, &initial, operands)?;
    let program = compile(backend, &setup.graph, &placement)?;

    let first = run_once(backend, &placement, program.as_ref(), &setup.scalars)?;
    let error = check::check(setup, &initial, &placement, &first)?;
    let second = run_once(backend, &placement, program.as_ref(), &setup.scalars)?;
    check::same(setup, &placement, &first, &second)?;
    Ok(Outcome::Passed {
        nmse: error.nmse,
        limit_share: error.limit_share,
    })
}

/// Compiles a case as a run does, and runs nothing; `None` if the backend does not support it.
pub fn compile_case(
    backend: &dyn Backend,
    case: &Case,
) -> Result<Option<Arc<dyn Program>>, Failure> {
    let setup = case.setup()?;
    if unsupported(backend, &setup.graph).is_some() {
        return Ok(None);
    }
    let initial = setup.initial_bytes(&case.name())?;
    let placement = Placement::new(backend, &setup, &initial, Operands::Allocated)?;
    Ok(Some(compile(backend, &setup.graph, &placement)?))
}

/// Why a backend does not support a graph; `None` if it does.
pub fn unsupported(backend: &dyn Backend, graph: &Graph) -> Option<String> {
    let nodes = graph.node_refs();
    nodes
        .map(|node| backend.supports(node))
        .find_map(|support| match support {
            Support::Yes => None,
            Support::No(reason) => Some(reason.to_string()),
        })
}

/// A graph's program with its storages where `placement` puts them.
pub(crate) fn compile(
    backend: &dyn Backend,
    graph: &Graph,
    placement: &Placement,
) -> Result<Arc<dyn Program>, DeviceError> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let nodes = &nodes;
    let kernel = backend.compile(Segment::unfused(graph, nodes))?;
    kernel.bind(placement.memory())
}

fn run_once(
    backend: &dyn Backend,
    placement: &Placement,
    program: &dyn Program,
    scalars: &[i32],
) -> Result<Vec<Vec<u8>>, DeviceError> {
    placement.upload(backend)?;
    let queue = backend.queue();
    queue.launch(program, scalars)?;
    let fence = queue.fence()?;
    queue.wait(fence)?;
    placement.download(backend)
}
