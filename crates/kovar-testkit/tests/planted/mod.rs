//! A simulated device with a fault of the kind that kernels have.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kovar_core::backend::{
    Backend, Binding, Buffer, DeviceInfo, Fence, Import, Kernel, MemoryMap, Program, Queue,
    ReadTicket, Segment, Support, WeightUse,
};
use kovar_core::error::DeviceError;
use kovar_core::{Graph, HostBytes, NodeRef, Storage, Value};
use kovar_testkit::oracle::Activations;
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};
use kovar_testkit::unit_offsets;

/// What the device does wrong with each launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlantedFault {
    /// Nothing.
    None,
    /// Changes the second element of the result.
    WrongElement,
    /// Writes the byte behind the result's storage.
    WriteBehind,
    /// Writes the byte before the result's storage.
    WriteBefore,
    /// Writes the first byte of the result's storage.
    TouchFirstByte,
    /// Leaves the last element of the result as it was.
    LeaveElement,
    /// Does not run at all.
    DoNothing,
    /// Writes into the first operand.
    ChangeInput,
    /// Changes the lowest bit of the result's first element, but not with the first launch.
    DifferOnReplay,
    /// Quantises activations whatever the precision.
    AlwaysQuantize,
    /// Changes every element by a hundredth.
    AddNoise,
}

/// The graph and the memory of the last program.
type Bound = Arc<Mutex<Option<(Graph, MemoryMap)>>>;

#[derive(Debug)]
struct PlantedKernel {
    kernel: Arc<dyn Kernel>,
    graph: Graph,
    bound: Bound,
}

impl Kernel for PlantedKernel {
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        let program = self.kernel.bind(memory)?;
        *self.bound.lock().unwrap() = Some((self.graph.clone(), memory.clone()));
        Ok(program)
    }
}

#[derive(Debug)]
pub struct Planted {
    device: SimulatedDevice,
    fault: PlantedFault,
    bound: Bound,
    launches: AtomicUsize,
}

impl Planted {
    pub fn new(fault: PlantedFault) -> Self {
        let quantizes = matches!(fault, PlantedFault::AlwaysQuantize | PlantedFault::AddNoise);
        let device = SimulatedDevice::new(SimulatedOptions {
            activations: if quantizes {
                Activations::Quantized
            } else {
                Activations::Exact
            },
            ..SimulatedOptions::default()
        });
        Self {
            device,
            fault,
            bound: Bound::default(),
            launches: AtomicUsize::new(0),
        }
    }

    fn change(
        &self,
        binding: &Binding,
        at: usize,
        len: usize,
        change: impl Fn(&mut [u8]),
    ) -> Result<(), DeviceError> {
        let mut bytes = vec![0; len];
        let queue = self.device.queue();
        queue.read_into(&binding.buffer, at, &mut bytes)?;
        change(&mut bytes);
        queue.write(&binding.buffer, at, &bytes)
    }

    fn tamper(&self, graph: &Graph, memory: &MemoryMap) -> Result<(), DeviceError> {
        let launch = self.launches.fetch_add(1, Ordering::SeqCst);
        let node = graph.node(graph.node_ids().next().unwrap()).unwrap();
        let output: &Value = node.output();
        let result = memory.get(output.storage).unwrap();
        let element = |i: usize| result.offset + unit_offsets(output)[i];
        let elements = output.layout.elements();
        match self.fault {
            PlantedFault::WrongElement => self.change(result, element(1), 4, |b| {
                let value = f32::from_le_bytes(b.try_into().unwrap());
                b.copy_from_slice(&(value * 1.001 + 0.001).to_le_bytes());
            }),
            PlantedFault::WriteBehind => {
                let end = result.offset + node.storage_of(output).bytes;
                self.change(result, end, 1, |b| b[0] ^= 1)
            }
            PlantedFault::WriteBefore => self.change(result, result.offset - 1, 1, |b| b[0] ^= 1),
            PlantedFault::TouchFirstByte => self.change(result, result.offset, 1, |b| b[0] ^= 1),
            PlantedFault::LeaveElement => {
                self.change(result, element(elements - 1), 4, |b| b.fill(0xff))
            }
            PlantedFault::ChangeInput => {
                let input = memory.get(node.input(0).unwrap().storage).unwrap();
                self.change(input, input.offset + 5, 1, |b| b[0] ^= 1)
            }
            PlantedFault::DifferOnReplay if launch > 0 => {
                self.change(result, element(0), 1, |b| b[0] ^= 1)
            }
            PlantedFault::AddNoise => {
                for i in 0..elements {
                    let sign = if i % 2 == 0 { 1.01 } else { 0.99 };
                    self.change(result, element(i), 4, |b| {
                        let value = f32::from_le_bytes((&*b).try_into().unwrap());
                        b.copy_from_slice(&(value * sign).to_le_bytes());
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Backend for Planted {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        self.device.supports(node)
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        self.device.estimate(node)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.device.alloc(bytes)
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        self.device.import_host(bytes)
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        self.device.prepare(weight, bytes, uses)
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        let mut graph = segment.graph.clone();
        if self.fault == PlantedFault::AlwaysQuantize {
            graph = with_default_precision(segment.graph);
        }
        let kernel = self
            .device
            .compile(Segment::unfused(&graph, segment.nodes))?;
        Ok(Arc::new(PlantedKernel {
            kernel,
            graph,
            bound: self.bound.clone(),
        }))
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}

/// The graph of one product with the same operands at default precision.
fn with_default_precision(graph: &Graph) -> Graph {
    let mut copy = Graph::new();
    let storage = |i: usize| &graph.storages()[i];
    let (w, x) = (storage(0), storage(1));
    let w = copy.weight(&w.name, w.dtype, &w.dims).unwrap();
    let x = copy.temp(&x.name, x.dtype, &x.dims).unwrap();
    copy.matmul(w, x).unwrap();
    copy
}

impl Queue for Planted {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.queue().write(buffer, offset, bytes)
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        self.device.queue().read(buffer, offset, len)
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        self.device
            .queue()
            .copy(from, from_offset, to, to_offset, len)
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        self.device.queue().fill(buffer, offset, len, byte)
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        if self.fault == PlantedFault::DoNothing {
            return Ok(());
        }
        self.device.queue().launch(program, scalars)?;
        let bound = self.bound.lock().unwrap();
        let (graph, memory) = bound.as_ref().unwrap();
        self.tamper(graph, memory)
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        self.device.queue().fence()
    }

    fn wait(&self, fence: Fence) -> Result<(), DeviceError> {
        self.device.queue().wait(fence)
    }
}
