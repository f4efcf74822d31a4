//! A device on plain byte vectors that refuses foreign memory and hands out memory full of NaN.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kovar_core::backend::*;
use kovar_core::error::DeviceError;
use kovar_core::{DType, Graph, HostBytes, NodeId, NodeRef, Storage, StorageKind};

use crate::interpreter::{OPS, positions, results};

#[derive(Debug)]
pub struct Sim {
    info: DeviceInfo,
    refused: Vec<&'static str>,
    streams: bool,
    queue: SimQueue,
    live_bytes: Arc<AtomicUsize>,
}

/// What a device was asked for.
#[derive(Debug, Default)]
pub struct Log {
    pub prepared: Vec<(String, usize)>,
    pub writes: usize,
    pub launches: Vec<Vec<i32>>,
}

#[derive(Debug)]
struct SimQueue {
    device: String,
    log: Mutex<Log>,
    fail_launches: AtomicUsize,
}

#[derive(Debug)]
struct Memory {
    device: String,
    bytes: Mutex<Vec<u8>>,
    live_bytes: Arc<AtomicUsize>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.live_bytes.fetch_sub(self.len(), Ordering::SeqCst);
    }
}

impl DeviceMemory for Memory {
    fn len(&self) -> usize {
        self.bytes.lock().unwrap().len()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct SimProgram {
    graph: Graph,
    memory: MemoryMap,
    /// The nodes, each with whether its output's storage is to be filled with NaN before.
    nodes: Vec<(NodeId, bool)>,
}

#[derive(Debug)]
struct SimKernel {
    device: String,
    segment: OwnedSegment,
}

impl Kernel for SimKernel {
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        let segment = self.segment.get();
        let mut touched = std::collections::HashSet::new();
        let mut nodes = Vec::new();
        for &id in segment.nodes {
            let node = segment.graph.node(id).unwrap();
            for value in node.inputs().chain([node.output()]) {
                let storage = node.storage_of(value);
                let bound = memory.get(value.storage);
                let fits = bound.is_some_and(|b| b.buffer.len() >= b.offset + storage.bytes);
                if !fits {
                    return Err(DeviceError::Unbound {
                        device: self.device.clone(),
                        storage: storage.name.clone(),
                    });
                }
            }
            for value in node.inputs() {
                touched.insert(value.storage);
            }
            let output = node.output();
            let kind = node.storage_of(output).kind;
            let in_arena = matches!(kind, StorageKind::Temp | StorageKind::Output);
            nodes.push((id, touched.insert(output.storage) && in_arena));
        }
        Ok(Arc::new(SimProgram {
            graph: segment.graph.clone(),
            memory: memory.clone(),
            nodes,
        }))
    }
}

impl Program for SimProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kernels(&self) -> Vec<&'static str> {
        let nodes = self.nodes.iter().map(|(id, _)| self.graph.node(*id));
        nodes.map(|node| node.unwrap().op().name()).collect()
    }

    fn own_bytes(&self) -> usize {
        self.nodes.len()
    }
}

struct Ticket(Vec<u8>);

impl ReadTicket for Ticket {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        Ok(self.0)
    }
}

impl Sim {
    pub fn new(id: &str) -> Self {
        Self {
            info: DeviceInfo {
                id: id.into(),
                kind: DeviceKind::Simulated,
                name: format!("simulated {id}"),
                driver: String::new(),
                features: Vec::new(),
                memory_bytes: None,
                alignment: 16,
                max_buffer_bytes: 1 << 20,
                threads: None,
            },
            refused: Vec::new(),
            streams: true,
            queue: SimQueue {
                device: id.into(),
                log: Mutex::default(),
                fail_launches: AtomicUsize::new(0),
            },
            live_bytes: Arc::default(),
        }
    }

    pub fn without_streaming(mut self) -> Self {
        self.streams = false;
        self
    }

    pub fn refusing(mut self, op: &'static str) -> Self {
        self.refused.push(op);
        self
    }

    pub fn with_max_buffer(mut self, bytes: usize) -> Self {
        self.info.max_buffer_bytes = bytes;
        self
    }

    pub fn log<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.queue.log.lock().unwrap())
    }

    /// Bytes allocated and not freed.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Ordering::SeqCst)
    }

    /// Lets the next launches fail.
    pub fn fail_launches(&self, n: usize) {
        self.queue.fail_launches.store(n, Ordering::SeqCst);
    }

    fn memory(&self, bytes: Vec<u8>) -> Buffer {
        self.live_bytes.fetch_add(bytes.len(), Ordering::SeqCst);
        Buffer::new(Arc::new(Memory {
            device: self.info.id.clone(),
            bytes: Mutex::new(bytes),
            live_bytes: self.live_bytes.clone(),
        }))
    }
}

impl SimQueue {
    fn with<T>(
        &self,
        what: &'static str,
        buffer: &Buffer,
        (offset, len): (usize, usize),
        f: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, DeviceError> {
        let memory = buffer.downcast::<Memory>();
        let Some(memory) = memory.filter(|memory| memory.device == self.device) else {
            return Err(DeviceError::Foreign {
                device: self.device.clone(),
                what,
            });
        };
        let mut bytes = memory.bytes.lock().unwrap();
        let buffer_len = bytes.len();
        let range = bytes.get_mut(offset..offset + len);
        let range = range.ok_or_else(|| DeviceError::OutOfRange {
            device: self.device.clone(),
            what,
            offset,
            len,
            buffer_len,
        })?;
        Ok(f(range))
    }

    fn run(&self, program: &SimProgram) -> Result<(), DeviceError> {
        for &(id, poison) in &program.nodes {
            let node = program.graph.node(id).unwrap();
            let output = node.output();
            let to = program.memory.get(output.storage).unwrap();
            let len = node.storage_of(output).bytes;
            if poison {
                self.fill(&to.buffer, to.offset, len, 0xff)?;
            }
            let written = results(node, |value| {
                let from = program.memory.get(value.storage).unwrap();
                let range = (from.offset, node.storage_of(value).bytes);
                self.with("launch", &from.buffer, range, |bytes| {
                    let at = positions(&value.layout).into_iter();
                    at.map(|p| bytes[p * 4..p * 4 + 4].try_into().unwrap())
                        .collect()
                })
                .unwrap()
            });
            self.with("launch", &to.buffer, (to.offset, len), |bytes| {
                for (at, element) in written {
                    bytes[at * 4..at * 4 + 4].copy_from_slice(&element);
                }
            })?;
        }
        Ok(())
    }
}

impl Queue for SimQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.log.lock().unwrap().writes += 1;
        self.with("write", buffer, (offset, bytes.len()), |to| {
            to.copy_from_slice(bytes);
        })
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        let bytes = self.with("read", buffer, (offset, len), |from| from.to_vec())?;
        Ok(Box::new(Ticket(bytes)))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let bytes = self.read(from, from_offset, len)?.wait()?;
        self.write(to, to_offset, &bytes)
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        self.with("fill", buffer, (offset, len), |to| to.fill(byte))
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let failing = self
            .fail_launches
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if failing.is_ok() {
            return Err(DeviceError::Lost {
                device: self.device.clone(),
                reason: "it was asked to fail".into(),
            });
        }
        self.log.lock().unwrap().launches.push(scalars.to_vec());
        self.run(program.as_any().downcast_ref().unwrap())
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        Ok(Fence(0))
    }

    fn wait(&self, _fence: Fence) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl Backend for Sim {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        let op = node.op().name();
        if self.refused.contains(&op) || !OPS.contains(&op) {
            return Support::No(Reason::Op { op });
        }
        let four_bytes = |dtype: DType| matches!(dtype, DType::F32 | DType::I32);
        match node.inputs().find(|value| !four_bytes(value.dtype)) {
            Some(value) => Support::No(Reason::DType {
                op,
                operand: "x",
                dtype: value.dtype,
            }),
            None => Support::Yes,
        }
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        node.cost().bytes_written as f64
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        if bytes > self.info.max_buffer_bytes {
            return Err(DeviceError::OutOfMemory {
                device: self.info.id.clone(),
                what: "a buffer".into(),
                requested: bytes,
            });
        }
        Ok(self.memory(vec![0xff; bytes]))
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        Ok((self.memory(bytes.as_slice().to_vec()), Import::Copied))
    }

    fn streams(&self, _weight: &Storage, _uses: &[WeightUse<'_>]) -> bool {
        self.streams
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        let mut log = self.queue.log.lock().unwrap();
        log.prepared.push((weight.name.clone(), uses.len()));
        Ok(self.memory(bytes.as_slice().to_vec()))
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        Ok(Arc::new(SimKernel {
            device: self.info.id.clone(),
            segment: segment.into(),
        }))
    }

    fn queue(&self) -> &dyn Queue {
        &self.queue
    }
}
