//! Tables of small cases for each operation. One table feeds every backend's tests, `kovar
//! test-ops` and the benches; a bug becomes a case.

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
mod factors;
mod gemm;
mod get_rows;
mod glu;
mod group_norm;
mod images;
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
mod rope_sweep;
mod row_scales;
mod scale;
mod set_rows;
mod setup;
mod softmax;
mod sweep;
mod timestep_embedding;
mod token_shift;
mod unary;
mod upscale;
mod wkv7;

use std::fmt;
use std::sync::Arc;

use kovar_core::DType;
use kovar_core::error::GraphError;
use kovar_core::ops::dtypes;

pub use setup::{Form, Place, Setup, Target};

type Build = dyn Fn(&mut Setup) -> Result<(), GraphError> + Send + Sync;

/// A graph of one operation under test, as data: building it is cheap and gives the same graph and
/// the same operands every time. Its limits are those of [`limits`](crate::limits).
#[derive(Clone)]
pub struct Case {
    /// The table that it is from, named like the operation's file: `binary`.
    pub family: &'static str,
    /// The operation's name: `add`.
    pub op: &'static str,
    /// The dtypes of operands and result, as far as they vary: `q4_1xf32`.
    pub dtypes: String,
    /// Sizes and attributes: `n=33,k=96,m=5`.
    pub shape: String,
    /// How operands lie and where the result goes: `offset-fresh`.
    pub layout: String,
    build: Arc<Build>,
}

impl Case {
    /// A case that `build` sets up.
    pub fn new(
        family: &'static str,
        op: &'static str,
        (dtypes, shape, layout): (String, String, String),
        build: impl Fn(&mut Setup) -> Result<(), GraphError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            family,
            op,
            dtypes,
            shape,
            layout,
            build: Arc::new(build),
        }
    }

    /// Unique among all cases: `matmul/q4_1xf32/n=33,k=96,m=5/offset-fresh`.
    pub fn name(&self) -> String {
        let Self {
            op,
            dtypes,
            shape,
            layout,
            ..
        } = self;
        format!("{op}/{dtypes}/{shape}/{layout}")
    }

    /// The graph and what its storages hold.
    pub fn setup(&self) -> Result<Setup, GraphError> {
        let mut setup = Setup::default();
        (self.build)(&mut setup)?;
        Ok(setup)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name()).finish()
    }
}

/// The tables of one operation.
#[derive(Clone, Copy)]
pub struct Table {
    /// The name of the operation's file: `binary`.
    pub family: &'static str,
    /// Small cases that are held against the oracle.
    pub tests: fn() -> Vec<Case>,
    /// Cases of realistic size whose time is measured.
    pub perf: fn() -> Vec<Case>,
}

macro_rules! tables {
    ($($family:ident)*) => {
        /// Every table, by name.
        pub const TABLES: &[Table] = &[$(Table {
            family: stringify!($family),
            tests: $family::tests,
            perf: $family::perf,
        }),*];
    };
}

tables! {
    arange argmax argsort attention binary concat conv2d conv_transpose2d copy gemm
    get_rows glu group_norm l2_norm layer_norm matmul matmul_i8 matmul_id pad pool2d
    quantize_rows reduce repeat rms_norm rope rope_apply row_scales scale set_rows softmax
    timestep_embedding token_shift unary upscale wkv7
}

/// All test cases.
pub fn all() -> Vec<Case> {
    TABLES.iter().flat_map(|table| (table.tests)()).collect()
}

const FLOATS: [DType; dtypes::FLOATS.len()] = *dtypes::FLOATS.first_chunk().unwrap();

fn weights() -> impl Iterator<Item = DType> {
    dtypes::WEIGHTS.iter().copied()
}

fn plain() -> Vec<DType> {
    dtypes::PLAIN.to_vec()
}

/// Dtypes that operations only move and cast.
fn stored() -> impl Iterator<Item = DType> {
    plain().into_iter().filter(|dtype| !FLOATS.contains(dtype))
}

/// The name of a dtype in case names.
fn lower(dtype: DType) -> String {
    dtype.name().to_ascii_lowercase()
}

/// `[2, 3]` as `2x3`, rank 0 as `scalar`.
fn sizes(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "scalar".to_owned();
    }
    let sizes: Vec<String> = dims.iter().map(usize::to_string).collect();
    sizes.join("x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_every_case_builds_the_op_it_names() {
        let mut names = HashSet::new();
        for case in all()
            .into_iter()
            .chain(TABLES.iter().flat_map(|t| (t.perf)()))
        {
            let name = case.name();
            let setup = case.setup().unwrap_or_else(|e| panic!("{name}: {e}"));
            let ops: Vec<_> = setup.graph.nodes().iter().map(|n| n.op.name()).collect();
            assert!(ops.contains(&case.op), "{name}: {ops:?}");
            assert!(names.insert(name.clone()), "{name} is there twice");
        }
    }

    #[test]
    fn every_op_has_hundreds_of_cases() {
        for table in TABLES {
            let count = (table.tests)().len();
            assert!(count >= 100, "{} has {count} cases", table.family);
            assert!(!(table.perf)().is_empty(), "{}", table.family);
        }
    }
}
