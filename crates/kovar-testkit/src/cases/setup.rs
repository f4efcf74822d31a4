//! What a case puts on a device: a graph of the nodes under test, and the contents of its storages.

use kovar_core::error::GraphError;
use kovar_core::ops::{Op, Operands};
use kovar_core::{DType, Graph, ScalarId, StorageId, ValueId};

use crate::synthetic::{Fill, Random, fill_value};
use crate::tensor::TensorError;

/// The kind of storage that an operand lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A weight, which goes through the backend's `prepare`.
    Weight,
    /// An input.
    Input,
    /// A state.
    State,
    /// A temporary.
    Temp,
}

impl Place {
    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Place::Weight => "weight",
            Place::Input => "input",
            Place::State => "state",
            Place::Temp => "temp",
        }
    }
}

/// How a value lies on its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole storage, row-major.
    Contiguous,
    /// After two rows (of the first dimension) that are not part of it, and before another one.
    Offset,
    /// Each row of the last dimension is a window of a longer row.
    Gaps,
    /// The two dimensions before the last swapped in memory.
    Permuted,
    /// The last two dimensions swapped in memory.
    Transposed,
    /// A window of a larger storage along every dimension, with the two before the last swapped.
    Window,
    /// The first dimension repeats one element (stride 0). For reading only.
    Repeated,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 7] = [
        Form::Contiguous,
        Form::Offset,
        Form::Gaps,
        Form::Permuted,
        Form::Transposed,
        Form::Window,
        Form::Repeated,
    ];

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Form::Contiguous => "contiguous",
            Form::Offset => "offset",
            Form::Gaps => "gaps",
            Form::Permuted => "permuted",
            Form::Transposed => "transposed",
            Form::Window => "window",
            Form::Repeated => "repeated",
        }
    }

    /// Whether a value of this dtype and rank can have this form.
    pub fn applies(self, dtype: DType, rank: usize) -> bool {
        match self {
            Form::Contiguous => true,
            Form::Gaps | Form::Window => rank >= 1,
            Form::Offset | Form::Repeated => rank >= 2 || (rank == 1 && !dtype.is_quantized()),
            Form::Permuted => rank >= 3,
            Form::Transposed => rank >= 2 && !dtype.is_quantized(),
        }
    }
}

/// Where a node under test writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A fresh output.
    Fresh,
    /// The window of this operand.
    InPlace(usize),
    /// A window of a temporary.
    Into(Form),
}

impl Target {
    /// The name in lower case.
    pub fn name(self) -> String {
        match self {
            Target::Fresh => "fresh".to_owned(),
            Target::InPlace(0) => "in_place".to_owned(),
            Target::InPlace(operand) => format!("in_place_{operand}"),
            Target::Into(form) => format!("into_{}", form.name()),
        }
    }
}

/// A graph of the nodes under test, and the contents of its storages before a run. Bytes that no
/// fill covers are 0xFF, which is NaN in every float dtype and as the scale of a block.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The graph.
    pub graph: Graph,
    /// What is written into the windows of values, in order.
    pub fills: Vec<(ValueId, Fill)>,
    /// The run-time scalars, by id.
    pub scalars: Vec<i32>,
}

impl Setup {
    /// A value of `dims` that lies on a storage of its own in the given form.
    pub fn window(
        &mut self,
        name: &str,
        place: Place,
        dtype: DType,
        dims: &[usize],
        form: Form,
    ) -> Result<ValueId, GraphError> {
        let rank = dims.len();
        let block = dtype.block_len();
        // Some elements, or a block, before a row's window and after it.
        let (before, after) = if block > 1 { (block, block) } else { (3, 2) };
        let mut sizes = dims.to_vec();
        let (mut lead, mut order) = (vec![0; rank], (0..rank).collect::<Vec<_>>());
        match form {
            Form::Contiguous => {}
            Form::Offset => (lead[0], sizes[0]) = (2, sizes[0] + 3),
            Form::Gaps => {
                (lead[rank - 1], sizes[rank - 1]) = (before, sizes[rank - 1] + before + after);
            }
            Form::Permuted => order.swap(rank - 2, rank - 3),
            Form::Transposed => order.swap(rank - 1, rank - 2),
            Form::Window => {
                for at in 0..rank {
                    let last = at + 1 == rank;
                    let (start, end) = if last { (before, after) } else { (1, 1) };
                    (lead[at], sizes[at]) = (start, sizes[at] + start + end);
                }
                if rank >= 3 {
                    order.swap(rank - 2, rank - 3);
                }
            }
            Form::Repeated => sizes[0] = 1,
        }
        // The orders swap one pair, so they are their own inverses.
        let stored: Vec<usize> = order.iter().map(|&at| sizes[at]).collect();
        let whole = self.storage(name, place, dtype, &stored)?;
        if form == Form::Repeated {
            return self.graph.broadcast_to(whole, dims);
        }
        let mut view = if order.is_sorted() {
            whole
        } else {
            self.graph.permute(whole, &order)?
        };
        for at in 0..rank {
            if sizes[at] != dims[at] {
                view = self.graph.slice(view, at, lead[at]..lead[at] + dims[at])?;
            }
        }
        Ok(view)
    }

    /// A contiguous value that is the whole of a storage.
    pub fn storage(
        &mut self,
        name: &str,
        place: Place,
        dtype: DType,
        dims: &[usize],
    ) -> Result<ValueId, GraphError> {
        match place {
            Place::Weight => self.graph.weight(name, dtype, dims),
            Place::Input => self.graph.input(name, dtype, dims),
            Place::State => self.graph.state(name, dtype, dims),
            Place::Temp => self.graph.temp(name, dtype, dims),
        }
    }

    /// Fills a value's window before the run.
    pub fn fill(&mut self, value: ValueId, fill: Fill) {
        self.fills.push((value, fill));
    }

    /// A window with its fill; see [`window`](Self::window).
    pub fn operand(
        &mut self,
        name: &str,
        place: Place,
        dtype: DType,
        dims: &[usize],
        form: Form,
        fill: Fill,
    ) -> Result<ValueId, GraphError> {
        let value = self.window(name, place, dtype, dims, form)?;
        self.fill(value, fill);
        Ok(value)
    }

    /// I32 numbers as an input of the given dims.
    pub fn indices(
        &mut self,
        name: &str,
        dims: &[usize],
        form: Form,
        ids: Vec<i64>,
    ) -> Result<ValueId, GraphError> {
        self.operand(
            name,
            Place::Input,
            DType::I32,
            dims,
            form,
            Fill::Indices(ids),
        )
    }

    /// A run-time scalar and its value.
    pub fn scalar(&mut self, name: &str, max: i32, value: i32) -> Result<ScalarId, GraphError> {
        let id = self.graph.scalar(name, max)?;
        self.scalars.push(value);
        Ok(id)
    }

    /// Appends a node that writes to `target`.
    pub fn apply(
        &mut self,
        op: impl Into<Op>,
        inputs: &[ValueId],
        target: Target,
    ) -> Result<ValueId, GraphError> {
        let op = op.into();
        match target {
            Target::Fresh => {
                let result = self.graph.apply(op, inputs)?;
                self.graph.set_output(result, "y")?;
                Ok(result)
            }
            Target::InPlace(operand) => {
                let over = inputs.get(operand).copied();
                let over = over.ok_or(GraphError::UnknownId {
                    what: "value",
                    index: operand,
                })?;
                self.graph.apply_into(op, inputs, over)
            }
            Target::Into(form) => {
                let values = inputs
                    .iter()
                    .map(|&id| self.graph.value(id))
                    .collect::<Result<Vec<_>, _>>()?;
                let spec = op.infer(&Operands::new(&op, &values, None)?)?;
                let y = self.window("y", Place::Temp, spec.dtype, &spec.dims, form)?;
                self.graph.apply_into(op, inputs, y)
            }
        }
    }

    /// The bytes that each storage holds before a run, by id. The same name gives the same bytes.
    pub fn initial_bytes(&self, name: &str) -> Result<Vec<Vec<u8>>, TensorError> {
        let mut random = Random::of_name(name);
        let storages = self.graph.storages();
        let mut bytes: Vec<Vec<u8>> = storages.iter().map(|s| vec![0xff; s.bytes]).collect();
        for (id, fill) in &self.fills {
            if let Ok(value) = self.graph.value(*id) {
                fill_value(value, fill, &mut random, &mut bytes[value.storage.index()])?;
            }
        }
        Ok(bytes)
    }

    /// The ids of storages that a node reads or writes.
    pub fn used_storages(&self) -> Vec<StorageId> {
        let nodes = self.graph.node_refs();
        let used: Vec<usize> = nodes
            .flat_map(|node| {
                let inputs = node.inputs().map(|value| value.storage.index());
                inputs
                    .chain([node.output().storage.index()])
                    .collect::<Vec<_>>()
            })
            .collect();
        self.graph
            .storage_ids()
            .filter(|id| used.contains(&id.index()))
            .collect()
    }
}
