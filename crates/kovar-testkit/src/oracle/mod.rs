//! What every operation computes, in slow f64 code written for clarity. It works on logical
//! tensors: strides, offsets and storage formats are left to [`read_value`](crate::read_value) and
//! [`write_value`](crate::write_value).

mod arange;
mod argmax;
mod argsort;
mod attention;
mod binary;
mod concat;
mod conv2d;
mod conv_transpose2d;
mod copy;
mod gemm;
mod get_rows;
mod glu;
mod group_norm;
mod l2_norm;
mod layer_norm;
mod matmul;
mod matmul_i8;
mod matmul_id;
mod pad;
mod pool2d;
mod quantize_rows;
mod reduce;
mod repeat;
mod rms_norm;
mod rope;
mod rope_apply;
mod row_scales;
mod scale;
mod set_rows;
mod softmax;
mod timestep_embedding;
mod token_shift;
mod unary;
mod upscale;
mod wkv7;

use kovar_core::ops::Op;
use kovar_core::quant::activation::ActivationError;
use kovar_core::{DType, Dims, NodeRef, ScalarId, Value};

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
    /// Which elements are written; all of them if `None`.
    pub written: Option<Vec<bool>>,
    /// The contents of the updated operands after the node, in the order of
    /// [`NodeRef::updates`].
    pub updates: Vec<TensorData>,
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
    /// An operand that does not match its dtype.
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

    /// How many of `tokens` tokens are valid.
    fn valid(&self, scalar: Option<ScalarId>, tokens: usize) -> Result<usize, OracleError> {
        let Some(scalar) = scalar else {
            return Ok(tokens);
        };
        let valid = usize::try_from(self.scalar(scalar.index())?).unwrap_or(0);
        Ok(valid.min(tokens))
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
    let mut updates = Vec::new();
    let data = match node.op() {
        Op::Arange(attributes) => arange::arange(attributes, &inputs)?,
        Op::Argmax(_) => argmax::argmax(&inputs)?,
        Op::Argsort(attributes) => argsort::argsort(attributes, &inputs)?,
        Op::Attention(attributes) => attention::attention(attributes, &inputs)?,
        Op::Binary(attributes) => binary::binary(attributes, &inputs)?,
        Op::Concat(attributes) => concat::concat(attributes, &inputs)?,
        Op::Copy(attributes) => copy::copy(attributes, &inputs)?,
        Op::Conv2d(attributes) => conv2d::conv2d(attributes, &inputs)?,
        Op::ConvTranspose2d(attributes) => conv_transpose2d::conv_transpose2d(attributes, &inputs)?,
        Op::Gemm(attributes) => gemm::gemm(attributes, &inputs)?,
        Op::GetRows(_) => get_rows::get_rows(&inputs)?,
        Op::Glu(attributes) => glu::glu(attributes, &inputs)?,
        Op::GroupNorm(attributes) => group_norm::group_norm(attributes, &inputs)?,
        Op::L2Norm(attributes) => l2_norm::l2_norm(attributes, &inputs)?,
        Op::LayerNorm(attributes) => layer_norm::layer_norm(attributes, &inputs)?,
        Op::Matmul(attributes) => matmul::matmul(attributes, &inputs, activations)?,
        Op::Pad(attributes) => pad::pad(attributes, &inputs)?,
        Op::Reduce(attributes) => reduce::reduce(attributes, &inputs)?,
        Op::Repeat(_) => repeat::repeat(&inputs)?,
        Op::RmsNorm(attributes) => rms_norm::rms_norm(attributes, &inputs)?,
        Op::Rope(attributes) => rope::rope(attributes, &inputs)?,
        Op::RopeApply(attributes) => rope_apply::rope_apply(attributes, &inputs)?,
        Op::Scale(attributes) => scale::scale(attributes, &inputs)?,
        Op::SetRows(_) => return set_rows::set_rows(&inputs),
        Op::Softmax(attributes) => softmax::softmax(attributes, &inputs)?,
        Op::TimestepEmbedding(attributes) => {
            timestep_embedding::timestep_embedding(attributes, &inputs)?
        }
        Op::Unary(attributes) => unary::unary(attributes, &inputs)?,
        Op::TokenShift(attributes) => {
            let (y, state) = token_shift::token_shift(attributes, &inputs)?;
            updates.push(state);
            y
        }
        Op::Wkv7(attributes) => {
            let (y, state) = wkv7::wkv7(attributes, &inputs)?;
            updates.push(state);
            y
        }
        Op::MatmulI8(_) => matmul_i8::matmul_i8(&inputs)?,
        Op::MatmulId(attributes) => matmul_id::matmul_id(attributes, &inputs, activations)?,
        Op::Pool2d(attributes) => pool2d::pool2d(attributes, &inputs)?,
        Op::QuantizeRows(_) => quantize_rows::quantize_rows(&inputs)?,
        Op::RowScales(_) => row_scales::row_scales(&inputs)?,
        Op::Upscale(attributes) => upscale::upscale(attributes, &inputs)?,
        op => return Err(OracleError::UnknownOp { op: op.name() }),
    };
    Ok(Output {
        data,
        written: None,
        updates,
    })
}
