//! Measures a device through its [`Backend`] alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kovar_core::backend::{
    Backend, Binding, Buffer, MemoryMap, Program, Queue, Segment, Support, WeightUse,
};
use kovar_core::error::{DeviceError, GraphError};
use kovar_core::ops::Scale;
use kovar_core::{DType, Graph, HostBytes, NodeId, StorageKind};

use super::{DeviceRates, LinkRates};

/// Why a device cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The graph of a measurement cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The device has neither a product nor an elementwise operation to measure.
    #[error("{device}: it supports none of the operations that are measured")]
    Unsupported {
        /// The device's id.
        device: String,
    },
    /// The measured times give no finite, positive rates.
    #[error("{device}: the measured times give no finite, positive rates")]
    Unsound {
        /// The device's id.
        device: String,
    },
}

/// How long each figure is measured.
const EACH: Duration = Duration::from_millis(80);
/// Work that takes this long is large enough to be measured.
const ENOUGH_NS: f64 = 4e6;
/// Launches per wait, so that the time of the wait is negligible.
const LAUNCHES: usize = 4;
/// The byte that fills all memory: a normal number near 1 as F16, BF16 or as the scale of a
/// quantised block, a small number as F32.
const FILL: u8 = 0x3c;

/// The dtypes of weights that are tried, in this order.
const FLOAT_WEIGHTS: [DType; 3] = [DType::F16, DType::BF16, DType::F32];
const QUANTIZED_WEIGHTS: [DType; 4] = [DType::Q4K, DType::Q8_0, DType::Q4_0, DType::Q6K];

/// Columns of the narrowest matrix: a super-block.
const MIN_COLUMNS: usize = 256;
/// Columns of the matrix that is read.
const READ_COLUMNS: usize = 4096;
/// Rows of the matrix that is read: from 1 MiB to 256 MiB of F16, which exceeds the caches.
const READ_ROWS: [usize; 5] = [128, 512, 2048, 8192, 32768];
/// Rows of square matrices that are multiplied with a quarter as many rows of activations.
const PRODUCT_ROWS: [usize; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
/// Small operations in sequence.
const CHAIN: usize = 256;
const COPY_BYTES: usize = 16 << 20;
const SMALL_COPY_BYTES: usize = 4 << 10;

/// Measures a device, which takes about a second. Other work on the machine affects the figures.
///
/// Products are measured at a size at which they take some milliseconds. The read bandwidth is
/// measured by a product of one row with a matrix that no cache holds.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(backend: &dyn Backend) -> Result<DeviceRates, MeasureError> {
    let float = supported(backend, &FLOAT_WEIGHTS)?;
    let quantized = supported(backend, &QUANTIZED_WEIGHTS)?;
    let (launch_ns, dispatch_ns) = dispatch(backend, float)?;
    let rates = DeviceRates {
        launch_ns,
        dispatch_ns,
        float_flops_per_ns: float.map(|dtype| product(backend, dtype)).transpose()?,
        quantized_flops_per_ns: quantized.map(|dtype| product(backend, dtype)).transpose()?,
        read_bytes_per_ns: reading(backend, float)?,
        upload: upload(backend)?,
        download: download(backend)?,
    };
    if !rates.is_sound() {
        let device = backend.info().id.clone();
        return Err(MeasureError::Unsound { device });
    }
    Ok(rates)
}

/// `y = x w^T`, `w` of `[rows, columns]` and `x` of `[n, columns]`.
fn product_graph(
    kind: StorageKind,
    dtype: DType,
    [rows, columns, n]: [usize; 3],
) -> Result<Graph, GraphError> {
    let mut graph = Graph::new();
    let dims = [rows, columns];
    let w = match kind {
        StorageKind::Weight => graph.weight("w", dtype, &dims)?,
        _ => graph.input("w", dtype, &dims)?,
    };
    let x = graph.input("x", DType::F32, &[n, columns])?;
    let y = graph.matmul(w, x)?;
    graph.set_output(y, "y")?;
    Ok(graph)
}

/// `CHAIN` scalings of the same few elements, or one of many.
fn scale_graph(elements: usize, chain: usize) -> Result<Graph, GraphError> {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[elements])?;
    let mut y = graph.scale(x, 1.0)?;
    for _ in 1..chain {
        y = graph.apply_in_place(Scale { scale: 1.0 }.into(), &[y])?;
    }
    graph.set_output(y, "y")?;
    Ok(graph)
}

/// The first dtype whose weights the device multiplies.
fn supported(backend: &dyn Backend, dtypes: &[DType]) -> Result<Option<DType>, MeasureError> {
    for &dtype in dtypes {
        let graph = product_graph(StorageKind::Weight, dtype, [64, MIN_COLUMNS, 16])?;
        if runs(backend, &graph) {
            return Ok(Some(dtype));
        }
    }
    Ok(None)
}

fn runs(backend: &dyn Backend, graph: &Graph) -> bool {
    let mut nodes = graph.node_refs();
    nodes.all(|node| backend.supports(node) == Support::Yes)
}

/// The time of a launch and of each small operation in it, in nanoseconds, from a program of one
/// operation and a program of many.
fn dispatch(backend: &dyn Backend, float: Option<DType>) -> Result<(f64, f64), MeasureError> {
    let chain = scale_graph(64, CHAIN)?;
    if runs(backend, &chain) {
        let many = Job::new(backend, &chain)?.time()?;
        let one = Job::new(backend, &scale_graph(64, 1)?)?.time()?;
        let each = (many - one).max(1.0) / (CHAIN - 1) as f64;
        return Ok(((one - each).max(1.0), each));
    }
    let Some(dtype) = float else {
        let device = backend.info().id.clone();
        return Err(MeasureError::Unsupported { device });
    };
    // One product does not tell the launch from the dispatch: each gets a half.
    let graph = product_graph(StorageKind::Input, dtype, [64, MIN_COLUMNS, 1])?;
    let both = Job::new(backend, &graph)?.time()?;
    Ok((both / 2.0, both / 2.0))
}

/// Floating-point operations per nanosecond.
fn product(backend: &dyn Backend, dtype: DType) -> Result<f64, MeasureError> {
    let graphs = PRODUCT_ROWS.iter().map(|&rows| {
        let sizes = [rows, rows.max(MIN_COLUMNS), rows / 4];
        product_graph(StorageKind::Weight, dtype, sizes)
    });
    rate(backend, graphs, |graph| {
        let costs = graph.node_refs().map(|node| node.cost());
        costs.map(|cost| cost.flops as f64).sum()
    })
}

/// Bytes per nanosecond.
fn reading(backend: &dyn Backend, float: Option<DType>) -> Result<f64, MeasureError> {
    let info = backend.info();
    // Other users of the device can spare an eighth of its memory.
    let most = info.memory_bytes.map_or(usize::MAX, |bytes| {
        usize::try_from(bytes / 8).unwrap_or(usize::MAX)
    });
    let most = most.min(info.max_buffer_bytes);
    let fits = |rows: usize| rows == READ_ROWS[0] || rows * READ_COLUMNS * size_of::<f32>() <= most;
    let graphs = READ_ROWS.iter().filter(|&&rows| fits(rows)).map(|&rows| {
        match float {
            Some(dtype) => product_graph(StorageKind::Input, dtype, [rows, READ_COLUMNS, 1]),
            // Half as many elements, as they are written too.
            None => scale_graph(rows * READ_COLUMNS / 2, 1),
        }
    });
    rate(backend, graphs, |graph| {
        let costs = graph.node_refs().map(|node| node.cost());
        costs
            .map(|cost| (cost.bytes_read + cost.bytes_written) as f64)
            .sum()
    })
}

/// The rate of the first graph that takes long enough, or of the last one; the graphs grow, and
/// `amount` gives the work of one run of a graph.
fn rate(
    backend: &dyn Backend,
    graphs: impl Iterator<Item = Result<Graph, GraphError>>,
    amount: impl Fn(&Graph) -> f64,
) -> Result<f64, MeasureError> {
    let mut last = None;
    for graph in graphs {
        let graph = graph?;
        // Freed before the next graph takes memory.
        drop(last.take());
        let job = Job::new(backend, &graph)?;
        let probe = least(Duration::ZERO, || job.run(1))?;
        last = Some((job, amount(&graph)));
        if probe >= ENOUGH_NS {
            break;
        }
    }
    match last {
        Some((job, amount)) => Ok(amount / job.time()?),
        None => Err(MeasureError::Unsupported {
            device: backend.info().id.clone(),
        }),
    }
}

fn upload(backend: &dyn Backend) -> Result<LinkRates, MeasureError> {
    link(backend, |buffer, bytes| {
        let queue = backend.queue();
        queue.write(buffer, 0, bytes)?;
        queue.wait(queue.fence()?)
    })
}

fn download(backend: &dyn Backend) -> Result<LinkRates, MeasureError> {
    link(backend, |buffer, bytes| {
        let read = backend.queue().read(buffer, 0, bytes.len())?;
        read.wait().map(drop)
    })
}

/// The latency and the bandwidth of a link, from a small copy and a large one.
fn link(
    backend: &dyn Backend,
    copy: impl Fn(&Buffer, &[u8]) -> Result<(), DeviceError>,
) -> Result<LinkRates, MeasureError> {
    let large = COPY_BYTES.min(backend.info().max_buffer_bytes);
    let small = SMALL_COPY_BYTES.min(large / 2);
    let bytes = vec![FILL; large];
    let buffer = filled(backend, large)?;
    let part = bytes.get(..small).unwrap_or_default();
    let latency_ns = least(EACH / 4, || copy(&buffer, part))?;
    let time = least(EACH, || copy(&buffer, &bytes))?;
    Ok(LinkRates {
        latency_ns,
        bytes_per_ns: (large - small) as f64 / (time - latency_ns).max(1.0),
    })
}

/// Memory whose bytes are [`FILL`].
fn filled(backend: &dyn Backend, bytes: usize) -> Result<Buffer, DeviceError> {
    let buffer = backend.alloc(bytes)?;
    backend.queue().fill(&buffer, 0, bytes, FILL)?;
    Ok(buffer)
}

/// A graph on a device, ready to run.
struct Job<'b> {
    queue: &'b dyn Queue,
    program: Arc<dyn Program>,
}

impl<'b> Job<'b> {
    fn new(backend: &'b dyn Backend, graph: &Graph) -> Result<Self, DeviceError> {
        let uses = WeightUse::all(graph);
        let mut memory = MemoryMap::new();
        for (id, storage) in graph.storage_ids().zip(graph.storages()) {
            let buffer = match storage.kind {
                StorageKind::Weight => {
                    let bytes = HostBytes::new(Arc::new(vec![FILL; storage.bytes]));
                    backend.prepare(storage, &bytes, uses.get(&id).map_or(&[], Vec::as_slice))?
                }
                _ => filled(backend, storage.bytes)?,
            };
            memory.bind(id, Binding { buffer, offset: 0 });
        }
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let nodes = &nodes;
        Ok(Self {
            queue: backend.queue(),
            program: backend
                .compile(Segment::unfused(graph, nodes))?
                .bind(&memory)?,
        })
    }

    /// Launches it `launches` times, and waits.
    fn run(&self, launches: usize) -> Result<(), DeviceError> {
        for _ in 0..launches {
            self.queue.launch(self.program.as_ref(), &[])?;
        }
        self.queue.wait(self.queue.fence()?)
    }

    /// The time of a launch, in nanoseconds.
    fn time(&self) -> Result<f64, DeviceError> {
        let once = least(Duration::ZERO, || self.run(1))?;
        let launches = if once < ENOUGH_NS { LAUNCHES } else { 1 };
        let time = least(EACH, || self.run(launches))?;
        Ok(time / launches as f64)
    }
}

/// The least time of `work`, in nanoseconds, of the repetitions within `limit` (at least one) after
/// a first one that is not timed.
fn least(limit: Duration, work: impl Fn() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
    work()?;
    let begin = Instant::now();
    let mut least = f64::INFINITY;
    loop {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed().as_secs_f64() * 1e9);
        if begin.elapsed() >= limit {
            return Ok(least.max(1.0));
        }
    }
}
