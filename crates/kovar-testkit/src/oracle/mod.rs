//! What every operation computes, in slow f64 code written for clarity. It works on logical
//! tensors: strides, offsets and storage formats are left to [`read_value`](crate::read_value) and
//! [`write_value`](crate::write_value).

mod attention;
mod binary;
mod conv2d;
mod conv_transpose2d;
mod copy;
mod gemm;
mod get_rows;
mod glu;
mod matmul;
mod matmul_i8;
mod matmul_id;
mod pool2d;
mod quantize_rows;
mod rms_norm;
mod rope;
mod row_scales;
mod scale;
mod set_rows;
mod softmax;
mod upscale;

use kovar_core::ops::Op;
use kovar_core::quant::activation::ActivationError;
use kovar_core::{DType, Dims, NodeRef, Value};

use crate::tensor::{TensorData, TensorError};

/// How products take their right-hand operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activations {
    /// As it is.
    #[default]
    Exact,
    /// Quantised to 8 bits by [`kovar_core::quant::activation`], where the weight is quantised.
    Quantized,
}

/// What a node writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The result, in the dims of the node's output.
    pub data: TensorData,
    /// Which elements are written; all of them without it.
    pub written: Option<Vec<bool>>,
}

/// Why the oracle has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// An operation that the oracle does not know.
    #[error("the oracle does not know {op}")]
    UnknownOp {
        /// The operation.
        op: &'static str,
    },
    /// An operand that was not given.
    #[error("{op}: operand {index} is missing")]
    MissingOperand {
        /// The operation.
        op: &'static str,
        /// The operand's index.
        index: usize,
    },
    /// A run-time scalar that was not given.
    #[error("{op}: run-time scalar {index} is missing")]
    MissingScalar {
        /// The operation.
        op: &'static str,
        /// The scalar's index.
        index: usize,
    },
    /// An operand that is not what its dtype says.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Activations that could not be quantised.
    #[error(transparent)]
    Activation(#[from] ActivationError),
}

/// The operands of a node as logical tensors.
pub(crate) struct Inputs<'a> {
    op: &'static str,
    data: &'a [TensorData],
    dtypes: Vec<DType>,
    output: &'a Value,
    scalars: &'a [i32],
}

impl<'a> Inputs<'a> {
    /// Operand `index`.
    fn get(&self, index: usize) -> Result<&'a TensorData, OracleError> {
        let op = self.op;
        let missing = OracleError::MissingOperand { op, index };
        self.data.get(index).ok_or(missing)
    }

    /// Operand `index` if the node has one there.
    fn optional(&self, index: Option<usize>) -> Result<Option<&'a TensorData>, OracleError> {
        index.map(|index| self.get(index)).transpose()
    }

    fn has(&self, index: usize) -> Option<usize> {
        (index < self.data.len()).then_some(index)
    }

    fn dtype(&self, index: usize) -> DType {
        self.dtypes.get(index).copied().unwrap_or(DType::F32)
    }

    /// The dims of the result.
    fn output_dims(&self) -> &'a Dims {
        self.output.dims()
    }

    fn scalar(&self, index: usize) -> Result<i64, OracleError> {
        let op = self.op;
        let value = self.scalars.get(index).copied().map(i64::from);
        value.ok_or(OracleError::MissingScalar { op, index })
    }
}

/// The result of a node whose operands hold `inputs`. `scalars` are the run-time scalars by id.
pub fn run_node(
    node: NodeRef<'_>,
    inputs: &[TensorData],
    scalars: &[i32],
    activations: Activations,
) -> Result<Output, OracleError> {
    let inputs = Inputs {
        op: node.op().name(),
        data: inputs,
        dtypes: node.inputs().map(|value| value.dtype).collect(),
        output: node.output(),
        scalars,
    };
    let data = match node.op() {
        Op::Attention(attributes) => attention::attention(attributes, &inputs)?,
        Op::Binary(attributes) => binary::binary(attributes, &inputs)?,
        Op::Conv2d(attributes) => conv2d::conv2d(attributes, &inputs)?,
        Op::ConvTranspose2d(attributes) => conv_transpose2d::conv_transpose2d(attributes, &inputs)?,
        Op::Copy(attributes) => copy::copy(attributes, &inputs)?,
        Op::Gemm(attributes) => gemm::gemm(attributes, &inputs)?,
        Op::GetRows(_) => get_rows::get_rows(&inputs)?,
        Op::Glu(attributes) => glu::glu(attributes, &inputs)?,
        Op::Matmul(attributes) => matmul::matmul(attributes, &inputs, activations)?,
        Op::MatmulI8(_) => matmul_i8::matmul_i8(&inputs)?,
        Op::MatmulId(attributes) => matmul_id::matmul_id(attributes, &inputs, activations)?,
        Op::Pool2d(attributes) => pool2d::pool2d(attributes, &inputs)?,
        Op::QuantizeRows(_) => quantize_rows::quantize_rows(&inputs)?,
        Op::RmsNorm(attributes) => rms_norm::rms_norm(attributes, &inputs)?,
        Op::Rope(attributes) => rope::rope(attributes, &inputs)?,
        Op::RowScales(_) => row_scales::row_scales(&inputs)?,
        Op::Scale(attributes) => scale::scale(attributes, &inputs)?,
        Op::SetRows(_) => return set_rows::set_rows(&inputs),
        Op::Softmax(attributes) => softmax::softmax(attributes, &inputs)?,
        Op::Upscale(attributes) => upscale::upscale(attributes, &inputs)?,
        op => return Err(OracleError::UnknownOp { op: op.name() }),
    };
    Ok(Output {
        data,
        written: None,
    })
}
