//! The operation vocabulary. One file per operation holds its attributes, its shape and alias
//! rules, its cost and its builder on [`Graph`](crate::Graph); [`Op`] is the table of them.

mod arange;
mod argmax;
mod argsort;
mod attention;
mod binary;
mod concat;
mod conv2d;
mod conv_transpose2d;
mod convolution;
mod copy;
pub mod dtypes;
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
mod rules;
mod scale;
mod set_rows;
mod softmax;
mod timestep_embedding;
mod token_shift;
mod unary;
mod upscale;
mod window;
mod wkv7;

pub use arange::Arange;
pub use argmax::Argmax;
pub use argsort::{Argsort, SortOrder};
pub use attention::Attention;
pub use binary::{Binary, BinaryKind};
pub use concat::Concat;
pub use conv_transpose2d::ConvTranspose2d;
pub use conv2d::Conv2d;
pub use copy::Copy;
pub use gemm::Gemm;
pub use get_rows::GetRows;
pub use glu::{Glu, GluKind};
pub use group_norm::GroupNorm;
pub use l2_norm::L2Norm;
pub use layer_norm::LayerNorm;
pub use matmul::Matmul;
pub use matmul_i8::MatmulI8;
pub use matmul_id::MatmulId;
pub use pad::Pad;
pub use pool2d::{Pool2d, PoolKind};
pub use quantize_rows::QuantizeRows;
pub use reduce::{Reduce, ReduceKind};
pub use repeat::Repeat;
pub use rms_norm::RmsNorm;
pub use rope::{Pairing, Rope, RopeAngles, RopeScaling, RopeSpec};
pub use rope_apply::RopeApply;
pub use row_scales::RowScales;
pub use rules::{Cost, OpClass, Operands, TensorSpec};
pub use scale::Scale;
pub use set_rows::SetRows;
pub use softmax::Softmax;
pub use timestep_embedding::TimestepEmbedding;
pub use token_shift::TokenShift;
pub use unary::{Unary, UnaryKind};
pub use upscale::{Upscale, UpscaleMode};
pub use wkv7::Wkv7;

use rules::{Rules, Signature};

use crate::error::GraphError;
use crate::graph::{ScalarId, Value};
use crate::layout::Layout;

/// How exactly a product or attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// The fastest way of the device: activations may be quantised to 8 bits for quantised weights,
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
    /// An arithmetic progression.
    Arange,
    /// The index of the greatest element.
    Argmax,
    /// Indices in the order of the elements.
    Argsort,
    /// Scaled dot-product attention.
    Attention,
    /// Elementwise operations on two operands.
    Binary,
    /// Concatenation along a dimension.
    Concat,
    /// Copies, casts and makes contiguous.
    Copy,
    /// Convolution over two dimensions.
    Conv2d,
    /// Transposed convolution over two dimensions.
    ConvTranspose2d,
    /// General products of matrices.
    Gemm,
    /// Rows of a table by index.
    GetRows,
    /// Gated activations.
    Glu,
    /// Group normalisation.
    GroupNorm,
    /// Euclidean normalisation.
    L2Norm,
    /// Layer normalisation.
    LayerNorm,
    /// Products with a weight on the left.
    Matmul,
    /// Padding with a constant.
    Pad,
    /// Sums and means over the last dimension.
    Reduce,
    /// Copies of a tensor side by side.
    Repeat,
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
    /// Rotary position embedding by matrices, with attention's permutation.
    RopeApply,
    /// Scales of rows that are to be quantised.
    RowScales,
    /// Multiplication by a constant.
    Scale,
    /// Writes rows by index.
    SetRows,
    /// Softmax over the last dimension.
    Softmax,
    /// Sinusoidal embeddings of diffusion time steps.
    TimestepEmbedding,
    /// Elementwise operations on one operand.
    Unary,
    /// The token before each token.
    TokenShift,
    /// The state recurrence of RWKV-7.
    Wkv7,
    /// Images of another size.
    Upscale,
}

impl Op {
    fn signature(&self) -> Signature {
        self.rules().signature()
    }

    /// The operation's name, in lower case: `matmul`, `rms_norm`, `add`.
    pub fn name(&self) -> &'static str {
        self.signature().name
    }

    /// The name of operand `i` in the operation's documentation.
    pub fn operand_name(&self, i: usize) -> &'static str {
        self.signature().operand_name(i)
    }

    /// Whether the operation is of a kind.
    pub fn is(&self, class: OpClass) -> bool {
        self.signature().classes.contains(&class)
    }

    /// Whether the operation is a matrix product, a convolution or attention.
    pub fn is_product(&self) -> bool {
        self.is(OpClass::Product)
    }

    /// Whether the result may overwrite operand `i`, in a window of
    /// [`in_place_window`](Self::in_place_window).
    pub fn in_place(&self, i: usize) -> bool {
        self.signature().in_place.contains(&i)
    }

    /// The layout that a result must have to overwrite operand `i`, which has layout `operand`:
    /// nearly always that layout. `None` if the operation cannot overwrite it.
    pub fn in_place_window(&self, i: usize, operand: &Layout) -> Option<Layout> {
        self.rules().in_place_window(i, operand)
    }

    /// Whether the operation also updates operand `i` in place: it reads the operand and overwrites
    /// it with what the next run reads.
    pub fn updates(&self, i: usize) -> bool {
        self.signature().updates.contains(&i)
    }

    /// Whether the operation leaves some bytes of its destination as they were.
    pub fn writes_partially(&self) -> bool {
        self.signature().writes_partially
    }

    /// A dimension of operand `i` and a run-time scalar, if the operation reads only that many rows
    /// along the dimension, the first ones; `None` if it may read the whole operand.
    pub fn valid_rows(&self, i: usize) -> Option<(usize, ScalarId)> {
        self.rules().valid_rows(i)
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
