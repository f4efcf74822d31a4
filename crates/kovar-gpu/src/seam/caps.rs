//! Properties and limits of a device.

use crate::kernel::Features;

/// Properties and limits of a device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Caps {
    /// The product's name.
    pub name: String,
    /// The API and the driver with its version.
    pub driver: String,
    /// Features that kernels may use.
    pub features: Features,
    /// The fewest and the most invocations of a subgroup; 0 without [`Features::SUBGROUPS`].
    pub subgroup_sizes: (u32, u32),
    /// The cooperative matrices; none without [`Features::MATRICES`].
    pub matrices: Vec<MatrixShape>,
    /// Bindings begin at multiples of this, in bytes; a power of two.
    pub binding_alignment: u64,
    /// The largest binding, in bytes.
    pub max_binding_bytes: u64,
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The most workgroups along a dimension.
    pub max_workgroups: u32,
    /// The most invocations of a workgroup.
    pub max_workgroup_size: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Whether the host and the device share their memory.
    pub unified_memory: bool,
    /// Memory of the device in bytes, if it is known.
    pub memory_bytes: Option<u64>,
    /// Whether the time of a dispatch can be measured on the device.
    pub timestamps: bool,
    /// Whether the device can read the host's own pages.
    pub imports_host: bool,
    /// Whether it is a software implementation on the CPU.
    pub software: bool,
}

impl Caps {
    /// The caps without the features `masked`.
    pub(crate) fn without(mut self, masked: Features) -> Self {
        self.features = self.features.without(masked);
        if masked.contains(Features::SUBGROUPS) {
            self.subgroup_sizes = (0, 0);
        }
        if masked.contains(Features::MATRICES) {
            self.matrices.clear();
        }
        self
    }
}

impl Caps {
    /// The caps with all cooperative matrices that kernels support, emulated by invocations.
    pub(crate) fn emulating_matrices(mut self) -> Self {
        self.features = self.features.without(Features::MATRICES);
        self.matrices = vec![MatrixShape::SINGLE, MatrixShape::HALF];
        self
    }
}

/// Element types of cooperative matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatrixElement {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Signed integers of 32 bits.
    I32,
    /// Unsigned integers of 32 bits.
    U32,
}

/// A cooperative product C += A B of a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// Elements of A and B.
    pub inputs: MatrixElement,
    /// Elements of C.
    pub result: MatrixElement,
}

impl MatrixShape {
    /// 8 x 8 of f32, as Metal has.
    pub(crate) const SINGLE: Self = Self::square(8, MatrixElement::F32);
    /// 16 x 16 of f16 with sums in f32.
    pub(crate) const HALF: Self = Self::square(16, MatrixElement::F16);

    const fn square(size: u32, inputs: MatrixElement) -> Self {
        Self {
            m: size,
            n: size,
            k: size,
            inputs,
            result: MatrixElement::F32,
        }
    }
}

/// The memory budget that the platform reports for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes that this process may use in total.
    pub budget: u64,
    /// Bytes that it uses.
    pub used: u64,
}
