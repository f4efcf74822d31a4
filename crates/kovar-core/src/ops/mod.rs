//! The operation vocabulary. One file per operation holds its attributes, its shape and alias
//! rules, its cost and its builder on [`Graph`](crate::Graph); [`Op`] is the table of them.

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
mod rules;
mod scale;
mod set_rows;
mod softmax;
mod upscale;
mod window;

pub use attention::Attention;
pub use binary::{Binary, BinaryKind};
pub use conv_transpose2d::ConvTranspose2d;
pub use conv2d::Conv2d;
pub use copy::Copy;
pub use gemm::Gemm;
pub use get_rows::GetRows;
pub use glu::{Glu, GluKind};
pub use matmul::Matmul;
pub use matmul_i8::MatmulI8;
pub use matmul_id::MatmulId;
pub use pool2d::{Pool2d, PoolKind};
pub use quantize_rows::QuantizeRows;
pub use rms_norm::RmsNorm;
pub use rope::{Pairing, Rope, RopeScaling, RopeSpec};
pub use row_scales::RowScales;
pub use rules::{Cost, Operands, TensorSpec};
pub use scale::Scale;
pub use set_rows::SetRows;
pub use softmax::Softmax;
pub use upscale::{Upscale, UpscaleMode};

use rules::Rules;

use crate::error::GraphError;
use crate::graph::{ScalarId, Value};

/// How exactly a product or attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As the device does it best: activations may be quantised to 8 bits for quantised weights,
    /// f16 products accumulate in f32.
    #[default]
    Default,
    /// Operands and accumulation in f32: no quantised activations, no f16 products.
    F32,
}

macro_rules! vocabulary {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An operation with its attributes.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* $name($name),)*
        }

        impl Op {
            fn rules(&self) -> &dyn Rules {
                match self {
                    $(Op::$name(attributes) => attributes,)*
                }
            }
        }

        $(impl From<$name> for Op {
            fn from(attributes: $name) -> Self {
                Op::$name(attributes)
            }
        })*
    };
}

vocabulary! {
    /// Scaled dot-product attention.
    Attention,
    /// Elementwise operations on two operands.
    Binary,
    /// Convolution over two dimensions.
    Conv2d,
    /// Transposed convolution over two dimensions.
    ConvTranspose2d,
    /// Copies, casts and makes contiguous.
    Copy,
    /// General products of matrices.
    Gemm,
    /// Rows of a table by index.
    GetRows,
    /// Gated activations.
    Glu,
    /// Products with a weight on the left.
    Matmul,
    /// Products with an 8-bit weight that has a scale for each row.
    MatmulI8,
    /// Products with the weights of chosen experts.
    MatmulId,
    /// Pooling over two dimensions.
    Pool2d,
    /// Rows as symmetric 8-bit codes.
    QuantizeRows,
    /// Root mean square normalisation.
    RmsNorm,
    /// Rotary position embedding.
    Rope,
    /// Scales of rows that are to be quantised.
    RowScales,
    /// Multiplication by a constant.
    Scale,
    /// Writes rows by index.
    SetRows,
    /// Softmax over the last dimension.
    Softmax,
    /// Images of another size.
    Upscale,
}

impl Op {
    /// The operation's name, in lower case: `matmul`, `rms_norm`, `add`.
    pub fn name(&self) -> &'static str {
        self.rules().name()
    }

    /// The name of operand `i` in the operation's documentation.
    pub fn operand_name(&self, i: usize) -> &'static str {
        self.rules().operands().get(i).copied().unwrap_or("?")
    }

    /// Whether the result may overwrite operand `i`, if both are the same window.
    pub fn in_place(&self, i: usize) -> bool {
        self.rules().in_place(i)
    }

    /// Whether the operation leaves some bytes of its destination as they were.
    pub fn writes_partially(&self) -> bool {
        self.rules().writes_partially()
    }

    /// The run-time scalar that the operation reads, if it reads one.
    pub fn scalar(&self) -> Option<ScalarId> {
        self.rules().scalar()
    }

    /// The dtype and dims of the result.
    pub fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        self.rules().infer(operands)
    }

    /// Arithmetic and traffic of one run. Attention counts the cache as full.
    pub fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        self.rules().cost(inputs, output)
    }
}
