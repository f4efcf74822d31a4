//! Graphs: storages, the values that are windows onto them, and the nodes that write them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::layout::Layout;
use crate::ops::{Cost, Op, Operands, TensorSpec};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// The position in the graph's list.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}

id! {
    /// A storage of a graph.
    StorageId
}
id! {
    /// A value of a graph.
    ValueId
}
id! {
    /// A node of a graph.
    NodeId
}
id! {
    /// A run-time scalar of a graph.
    ScalarId
}

/// The purpose of a storage, which decides who fills it and how long it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StorageKind {
    /// Read-only bytes of a model, shared by all plans of a session.
    Weight,
    /// Written by the caller before a run.
    Input,
    /// Lives across runs and is shared by all plans of a session: KV caches, recurrent state.
    State,
    /// Lives within a run.
    Temp,
    /// Written by a run and read by the caller after it.
    Output,
}

impl StorageKind {
    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            StorageKind::Weight => "weight",
            StorageKind::Input => "input",
            StorageKind::State => "state",
            StorageKind::Temp => "temporary",
            StorageKind::Output => "output",
        }
    }
}

/// A run of bytes that lives on one device. Two values alias if and only if they share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// Unique among the weights, states, inputs and outputs of a graph; a label for temporaries.
    pub name: String,
    /// Its purpose.
    pub kind: StorageKind,
    /// The dtype of the tensor that it was made for.
    pub dtype: DType,
    /// The dims of the tensor that it was made for, outermost first.
    pub dims: Dims,
    /// Its size.
    pub bytes: usize,
}

/// A typed, strided window onto a storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The storage.
    pub storage: StorageId,
    /// The element type.
    pub dtype: DType,
    /// Which elements, in units of `dtype` elements from the start of the storage.
    pub layout: Layout,
}

impl Value {
    /// Sizes, outermost first.
    pub fn dims(&self) -> &Dims {
        self.layout.dims()
    }

    /// The bytes of the storage from the first to the last element.
    pub fn byte_span(&self) -> Range<usize> {
        let span = self.layout.span();
        let (len, bytes) = (self.dtype.block_len(), self.dtype.block_bytes());
        let start = span.start / len * bytes;
        if span.is_empty() {
            return start..start;
        }
        start..span.end.div_ceil(len) * bytes
    }

    /// The position of the first element in bytes from the start of the storage.
    pub fn byte_offset(&self) -> usize {
        self.layout.offset() / self.dtype.block_len() * self.dtype.block_bytes()
    }

    /// The offset in bytes of each block in the storage, row by row; elements of a plain dtype are
    /// blocks of one.
    pub fn block_offsets(&self) -> impl ExactSizeIterator<Item = usize> + use<> {
        let (len, bytes) = (self.dtype.block_len(), self.dtype.block_bytes());
        let layout = self.layout;
        let mut index = [0; crate::MAX_RANK];
        (0..layout.elements() / len).map(move |_| {
            let (dims, strides) = (layout.dims(), layout.strides());
            let along = index.iter().zip(strides.iter());
            let at = layout.offset() + along.map(|(i, stride)| i * stride).sum::<usize>();
            for dim in (0..dims.rank()).rev() {
                index[dim] += if dim + 1 == dims.rank() { len } else { 1 };
                if index[dim] < dims[dim] {
                    break;
                }
                index[dim] = 0;
            }
            at / len * bytes
        })
    }

    /// Whether both lie on one storage and their byte spans overlap.
    pub fn overlaps(&self, other: &Value) -> bool {
        let (a, b) = (self.byte_span(), other.byte_span());
        self.storage == other.storage && a.start < b.end && b.start < a.end
    }
}

/// One operation with its operands and the value that it writes. Some operations also update
/// operands ([`Op::updates`]), such as a recurrent state.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The operation and its attributes.
    pub op: Op,
    /// The operands, in the order of the operation's documentation.
    pub inputs: Vec<ValueId>,
    /// What it writes. In place, this lies on an operand's storage.
    pub output: ValueId,
}

/// A number that the caller gives with every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its name, unique among the scalars.
    pub name: String,
    /// The largest value that a run may give; the least is 0.
    pub max: i32,
}

/// Operations in program order, as plain data. Nodes refer only to values made before them. A clone
/// is cheap: it shares the data until one of the two changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    storages: Arc<Vec<Storage>>,
    values: Arc<Vec<Value>>,
    nodes: Arc<Vec<Node>>,
    scalars: Arc<Vec<Scalar>>,
    names: Arc<HashMap<(&'static str, String), StorageId>>,
}

/// A node together with its graph.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'g> {
    graph: &'g Graph,
    node: &'g Node,
}

impl<'g> NodeRef<'g> {
    /// The operation.
    pub fn op(&self) -> &'g Op {
        &self.node.op
    }

    /// The graph that the node belongs to.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The number of operands.
    pub fn n_inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// Operand `i`, if the node has that many.
    pub fn input(&self, i: usize) -> Option<&'g Value> {
        self.graph.values.get(self.node.inputs.get(i)?.index())
    }

    /// All operands.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &'g Value> + use<'g> {
        let graph = self.graph;
        self.node.inputs.iter().map(|id| &graph.values[id.index()])
    }

    /// The operands that lie on weights, with their indices.
    pub fn weights(&self) -> impl Iterator<Item = (usize, &'g Value)> + use<'g> {
        let node = *self;
        let inputs = self.inputs().enumerate();
        inputs.filter(move |(_, value)| node.storage_of(value).kind == StorageKind::Weight)
    }

    /// What the node writes.
    pub fn output(&self) -> &'g Value {
        &self.graph.values[self.node.output.index()]
    }

    /// The operands that the node also updates.
    pub fn updates(&self) -> impl Iterator<Item = &'g Value> + use<'g> {
        let op = &self.node.op;
        let inputs = self.inputs().enumerate();
        inputs
            .filter(|&(i, _)| op.updates(i))
            .map(|(_, value)| value)
    }

    /// Everything that the node writes: its output and the operands that it updates.
    pub fn writes(&self) -> impl Iterator<Item = &'g Value> + use<'g> {
        std::iter::once(self.output()).chain(self.updates())
    }

    /// The storage of a value of the same graph.
    pub fn storage_of(&self, value: &Value) -> &'g Storage {
        &self.graph.storages[value.storage.index()]
    }

    /// Arithmetic and traffic of one run.
    pub fn cost(&self) -> Cost {
        let inputs: Vec<&Value> = self.inputs().collect();
        self.node.op.cost(&inputs, self.output())
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// All storages, by id.
    pub fn storages(&self) -> &[Storage] {
        &self.storages
    }

    /// All values, by id.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// All nodes in program order, by id.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All run-time scalars, by id.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// The ids of all storages.
    pub fn storage_ids(&self) -> impl ExactSizeIterator<Item = StorageId> + use<> {
        (0..self.storages.len()).map(StorageId::at)
    }

    /// The ids of all values; those of one storage start with the whole of it.
    pub fn value_ids(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        (0..self.values.len()).map(ValueId::at)
    }

    /// The ids of all nodes in program order.
    pub fn node_ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::at)
    }

    /// The id that the next node will have.
    pub fn next_node(&self) -> NodeId {
        NodeId::at(self.nodes.len())
    }

    /// The value of an id.
    pub fn value(&self, id: ValueId) -> Result<&Value, GraphError> {
        self.values.get(id.index()).ok_or(GraphError::UnknownId {
            what: "value",
            index: id.index(),
        })
    }

    /// The storage of an id; `None` if it is out of range.
    pub fn storage(&self, id: StorageId) -> Option<&Storage> {
        self.storages.get(id.index())
    }

    /// The storage that a value lies on.
    pub fn storage_of(&self, id: ValueId) -> Result<&Storage, GraphError> {
        Ok(&self.storages[self.value(id)?.storage.index()])
    }

    /// A node together with its graph; `None` for an id that is out of range. An id is an index,
    /// so one of another graph is not recognised as such where this graph has as many nodes.
    pub fn node(&self, id: NodeId) -> Option<NodeRef<'_>> {
        let node = self.nodes.get(id.index())?;
        Some(NodeRef { graph: self, node })
    }

    /// The nodes of ids, without those that are out of range.
    pub fn nodes_of<'g, 'i>(
        &'g self,
        ids: impl IntoIterator<Item = &'i NodeId>,
    ) -> impl Iterator<Item = NodeRef<'g>> {
        ids.into_iter().filter_map(|&id| self.node(id))
    }

    /// All nodes together with their graph, in program order.
    pub fn node_refs(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.nodes.iter().map(|node| NodeRef { graph: self, node })
    }

    /// The weight, input, state or output of a name.
    pub fn storage_named(&self, kind: StorageKind, name: &str) -> Option<StorageId> {
        self.names.get(&(kind.name(), name.to_owned())).copied()
    }

    /// The whole of the weight, input, state or output of a name.
    pub fn whole(&self, kind: StorageKind, name: &str) -> Option<ValueId> {
        let storage = self.storage_named(kind, name)?;
        // Every storage has a value, so the first one of this has no lower index.
        let mut values = self
            .value_ids()
            .zip(self.values.iter())
            .skip(storage.index());
        Some(values.find(|(_, value)| value.storage == storage)?.0)
    }

    /// A read-only tensor of the model, contiguous.
    pub fn weight(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        self.named(StorageKind::Weight, name, dtype, dims)
    }

    /// A tensor that the caller writes before each run, contiguous.
    pub fn input(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        self.named(StorageKind::Input, name, dtype, dims)
    }

    /// A tensor that lives across runs, contiguous, zero at first.
    pub fn state(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        self.named(StorageKind::State, name, dtype, dims)
    }

    /// A tensor that lives within a run and that operations write into, contiguous.
    pub fn temp(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        self.add_storage(StorageKind::Temp, name, dtype, dims)
    }

    /// Lets the caller read `value` after each run, under `name`. The value must be a result on a
    /// temporary storage of its own; the whole storage is kept to the end of the run.
    pub fn set_output(&mut self, value: ValueId, name: &str) -> Result<(), GraphError> {
        let id = self.value(value)?.storage;
        let storage = &self.storages[id.index()];
        if storage.kind != StorageKind::Temp {
            return Err(GraphError::NotAnOutput {
                name: name.to_owned(),
                kind: storage.kind.name(),
                storage: storage.name.clone(),
            });
        }
        self.register(StorageKind::Output, name, id)?;
        let storage = &mut Arc::make_mut(&mut self.storages)[id.index()];
        storage.kind = StorageKind::Output;
        storage.name = name.to_owned();
        Ok(())
    }

    /// A number between 0 and `max` that the caller gives with every run.
    pub fn scalar(&mut self, name: &str, max: i32) -> Result<ScalarId, GraphError> {
        if self.scalars.iter().any(|scalar| scalar.name == name) {
            return Err(GraphError::DuplicateName {
                name: name.to_owned(),
                kind: "scalar",
            });
        }
        if max < 0 {
            return Err(GraphError::ScalarMax {
                name: name.to_owned(),
                max,
            });
        }
        Arc::make_mut(&mut self.scalars).push(Scalar {
            name: name.to_owned(),
            max,
        });
        Ok(ScalarId::at(self.scalars.len() - 1))
    }

    fn named(
        &mut self,
        kind: StorageKind,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        self.register(kind, name, StorageId::at(self.storages.len()))?;
        self.add_storage(kind, name, dtype, dims).inspect_err(|_| {
            Arc::make_mut(&mut self.names).remove(&(kind.name(), name.to_owned()));
        })
    }

    fn register(&mut self, kind: StorageKind, name: &str, id: StorageId) -> Result<(), GraphError> {
        let key = (kind.name(), name.to_owned());
        if self.names.contains_key(&key) {
            return Err(GraphError::DuplicateName {
                name: name.to_owned(),
                kind: kind.name(),
            });
        }
        Arc::make_mut(&mut self.names).insert(key, id);
        Ok(())
    }

    fn add_storage(
        &mut self,
        kind: StorageKind,
        name: &str,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        let fail = |reason| GraphError::Tensor {
            name: name.to_owned(),
            dtype,
            dims: dims.to_vec(),
            reason,
        };
        let sizes = Dims::new(dims).ok_or_else(|| fail("more than 6 dims"))?;
        let layout = Layout::contiguous(sizes).ok_or_else(|| fail("too many elements"))?;
        if !sizes.from_end(0).is_multiple_of(dtype.block_len()) {
            return Err(fail("the rows are not whole blocks"));
        }
        let bytes = dtype
            .bytes_for(layout.elements())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| fail("too many bytes"))?;
        Arc::make_mut(&mut self.storages).push(Storage {
            name: name.to_owned(),
            kind,
            dtype,
            dims: sizes,
            bytes,
        });
        Ok(self.add_value(Value {
            storage: StorageId::at(self.storages.len() - 1),
            dtype,
            layout,
        }))
    }

    fn add_value(&mut self, value: Value) -> ValueId {
        Arc::make_mut(&mut self.values).push(value);
        ValueId::at(self.values.len() - 1)
    }

    /// Appends a node whose result is a fresh contiguous temporary.
    pub fn apply(&mut self, op: Op, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        let spec = self.infer(&op, inputs, None)?;
        self.check_updates(&op, inputs, None)?;
        let name = format!("{}.{}", op.name(), self.nodes.len());
        let output = self.add_storage(StorageKind::Temp, &name, spec.dtype, &spec.dims)?;
        Arc::make_mut(&mut self.nodes).push(Node {
            op,
            inputs: inputs.to_vec(),
            output,
        });
        Ok(output)
    }

    /// Appends a node that writes into `destination`: any writable window of the result's dtype
    /// and dims. It may lie on an operand's storage if it does not overlap the operand, or if it
    /// is the same window and the operation works in place on that operand (for an operation that
    /// permutes, the permuted window; see [`Op::in_place_window`]).
    pub fn apply_into(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        destination: ValueId,
    ) -> Result<ValueId, GraphError> {
        let spec = self.infer(&op, inputs, Some(destination))?;
        let target = *self.value(destination)?;
        if target.dtype != spec.dtype || *target.dims() != spec.dims {
            return Err(GraphError::Destination {
                op: op.name(),
                found_dtype: target.dtype,
                found: *target.dims(),
                dtype: spec.dtype,
                dims: spec.dims,
            });
        }
        self.check_writable(&op, &target)?;
        self.check_updates(&op, inputs, Some(&target))?;
        let storage = &self.storages[target.storage.index()];
        for (i, &input) in inputs.iter().enumerate() {
            let value = self.value(input)?;
            let in_place = op.in_place(i);
            let window = op.in_place_window(i, &value.layout);
            let same = value.dtype == target.dtype && window == Some(target.layout);
            if value.overlaps(&target) && !same {
                return Err(GraphError::Overlap {
                    op: op.name(),
                    operand: op.operand_name(i),
                    storage: storage.name.clone(),
                    in_place,
                });
            }
        }
        Arc::make_mut(&mut self.nodes).push(Node {
            op,
            inputs: inputs.to_vec(),
            output: destination,
        });
        Ok(destination)
    }

    /// Appends a node that overwrites its first operand.
    pub fn apply_in_place(&mut self, op: Op, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        match inputs.first() {
            Some(&first) => self.apply_into(op, inputs, first),
            None => self.apply(op, inputs),
        }
    }

    fn check_writable(&self, op: &Op, value: &Value) -> Result<(), GraphError> {
        let storage = &self.storages[value.storage.index()];
        let reason = if matches!(storage.kind, StorageKind::Weight | StorageKind::Input) {
            "is read-only"
        } else if value.layout.repeats_elements() {
            "names an element twice"
        } else {
            return Ok(());
        };
        Err(GraphError::NotWritable {
            op: op.name(),
            storage: storage.name.clone(),
            reason,
        })
    }

    /// Operands that are updated must be writable and must not overlap anything else that the node
    /// reads or writes.
    fn check_updates(
        &self,
        op: &Op,
        inputs: &[ValueId],
        destination: Option<&Value>,
    ) -> Result<(), GraphError> {
        for (i, &id) in inputs.iter().enumerate().filter(|&(i, _)| op.updates(i)) {
            let updated = self.value(id)?;
            self.check_writable(op, updated)?;
            let overlap = |other| GraphError::UpdateOverlap {
                op: op.name(),
                operand: op.operand_name(i),
                other,
                storage: self.storages[updated.storage.index()].name.clone(),
            };
            for (j, &other) in inputs.iter().enumerate().filter(|&(j, _)| j != i) {
                if self.value(other)?.overlaps(updated) {
                    return Err(overlap(op.operand_name(j)));
                }
            }
            if destination.is_some_and(|destination| destination.overlaps(updated)) {
                return Err(overlap("destination"));
            }
        }
        Ok(())
    }

    fn infer(
        &self,
        op: &Op,
        inputs: &[ValueId],
        destination: Option<ValueId>,
    ) -> Result<TensorSpec, GraphError> {
        let values = inputs
            .iter()
            .map(|&id| self.value(id))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(scalar) = op.scalar().filter(|id| id.index() >= self.scalars.len()) {
            return Err(GraphError::UnknownId {
                what: "scalar",
                index: scalar.index(),
            });
        }
        let destination = destination.map(|id| self.value(id)).transpose()?;
        op.infer(&Operands::new(op, &values, destination)?)
    }

    /// The elements `range` along dimension `dim`.
    pub fn slice(
        &mut self,
        value: ValueId,
        dim: usize,
        range: Range<usize>,
    ) -> Result<ValueId, GraphError> {
        let whole_blocks = |value: &Value| {
            let block = value.dtype.block_len();
            dim + 1 != value.dims().rank()
                || (range.start.is_multiple_of(block) && range.len().is_multiple_of(block))
        };
        self.view(
            value,
            || format!("the slice {range:?} along dimension {dim}"),
            |value| match value.layout.slice(dim, range.clone()) {
                Some(layout) if whole_blocks(value) => Ok(layout),
                Some(_) => Err("it cuts through a block"),
                None => Err("it is outside the value"),
            },
        )
    }

    /// Dimension `order[i]` becomes dimension `i`.
    pub fn permute(&mut self, value: ValueId, order: &[usize]) -> Result<ValueId, GraphError> {
        self.view(
            value,
            || format!("the permutation {order:?}"),
            |value| {
                let last = value.dims().rank().checked_sub(1);
                if value.dtype.is_quantized() && order.last().copied() != last {
                    return Err("rows of blocks must stay innermost");
                }
                let layout = value.layout.permute(order);
                layout.ok_or("it is not a permutation of the dims")
            },
        )
    }

    /// The same elements in the same order under other dims.
    pub fn reshape(&mut self, value: ValueId, dims: &[usize]) -> Result<ValueId, GraphError> {
        self.view(
            value,
            || format!("the reshape to {dims:?}"),
            |value| {
                let dims = Dims::new(dims).ok_or("more than 6 dims")?;
                if !dims.from_end(0).is_multiple_of(value.dtype.block_len()) {
                    return Err("the rows would not be whole blocks");
                }
                value
                    .layout
                    .reshape(dims)
                    .ok_or("the elements do not fit those dims without a copy")
            },
        )
    }

    /// Dims of size 1 repeated, and outer dims added, until the dims are `dims`. For reading only.
    pub fn broadcast_to(&mut self, value: ValueId, dims: &[usize]) -> Result<ValueId, GraphError> {
        self.view(
            value,
            || format!("the broadcast to {dims:?}"),
            |value| {
                let dims = Dims::new(dims).ok_or("more than 6 dims")?;
                value
                    .layout
                    .broadcast_to(dims)
                    .filter(|layout| {
                        !value.dtype.is_quantized()
                            || layout.dims().from_end(0) == value.dims().from_end(0)
                    })
                    .ok_or("a size is neither 1 nor the given one, or the elements are too many")
            },
        )
    }

    fn view(
        &mut self,
        id: ValueId,
        describe: impl Fn() -> String,
        make: impl Fn(&Value) -> Result<Layout, &'static str>,
    ) -> Result<ValueId, GraphError> {
        let value = *self.value(id)?;
        let layout = make(&value).map_err(|reason| GraphError::View {
            view: describe(),
            dtype: value.dtype,
            dims: *value.dims(),
            strides: *value.layout.strides(),
            reason,
        })?;
        Ok(self.add_value(Value { layout, ..value }))
    }
}
