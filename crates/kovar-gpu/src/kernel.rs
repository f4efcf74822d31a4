//! Kernels and their launches as plain data: bindings, parameters, constants and workgroups.

use std::fmt;

use crate::view::{Operand, View};

/// A kernel of `kernels/`: an entry point and its bindings, numbered from 1 in this order. Binding
/// 0 holds the parameters.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kernel {
    /// The file's name without its extension.
    pub file: &'static str,
    /// The entry point.
    pub entry: &'static str,
    /// The bindings from 1 on.
    pub bindings: &'static [Access],
}

impl Kernel {
    /// The bindings that are operands.
    pub fn n_operands(&self) -> usize {
        let bindings = self.bindings.iter();
        bindings.filter(|access| access.is_operand()).count()
    }

    /// A kernel that writes a result and reads this many operands, by the entry point named as its
    /// file.
    pub const fn new(file: &'static str, reads: usize) -> Self {
        use Access::{Read, Write};
        const BINDINGS: &[Access] = &[Write, Read, Read, Read, Read, Read, Read, Read];
        Self {
            file,
            entry: file,
            bindings: BINDINGS.split_at(1 + reads).0,
        }
    }

    /// The same by another entry point.
    pub const fn entry(self, entry: &'static str) -> Self {
        Self { entry, ..self }
    }
}

/// What a kernel does with a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// It writes, and may read.
    Write,
    /// It only reads. The source declares it `read_write`, because the operand may share a buffer
    /// with a written one; if it does not, it is bound read-only. In place, the same range is bound
    /// twice. A kernel therefore reads an element before it writes it, and has a barrier before it
    /// reads elements that another invocation writes.
    Read,
    /// It reads the graph's run-time scalars, an array of i32.
    Scalars,
    /// It reads the first [`MAX_UNIFORM_SCALARS`] of them as vectors in a uniform buffer.
    UniformScalars,
}

impl Access {
    /// Whether the binding is an operand of the dispatch.
    pub fn is_operand(self) -> bool {
        matches!(self, Access::Read | Access::Write)
    }
}

/// The number of run-time scalars in [`Access::UniformScalars`].
pub(crate) const MAX_UNIFORM_SCALARS: usize = 64;

/// Features of a device that kernels have variants for, and variants that depend on the node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features(u8);

impl Features {
    /// None.
    pub const NONE: Self = Self(0);
    /// All features of devices.
    pub const ALL: Self = Self(0b111);
    /// Operations over subgroups.
    pub const SUBGROUPS: Self = Self(1);
    /// Arithmetic in f16.
    pub const F16: Self = Self(1 << 1);
    /// Cooperative matrices.
    pub const MATRICES: Self = Self(1 << 2);
    /// Results of 16 bits. Chosen by node.
    pub(crate) const NARROW: Self = Self(1 << 3);
    /// Operands that are read in runs of 16 bytes. Chosen by node.
    pub(crate) const WIDE: Self = Self(1 << 4);
    /// Products of f16 with sums in f32. Chosen by node.
    pub(crate) const HALF: Self = Self(1 << 5);

    /// The variants that are chosen by node.
    pub(crate) const CHOICES: Self = Self::NARROW.with(Self::WIDE).with(Self::HALF);

    /// The names that kernels use, in the order of the bits.
    const NAMES: [&str; 6] = ["subgroups", "f16", "matrices", "narrow", "wide", "half"];

    /// The union of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection of both.
    pub const fn among(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The features of `self` that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The names of the features.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = Self::NAMES.into_iter().enumerate();
        names.filter_map(move |(bit, name)| (self.0 & 1 << bit != 0).then_some(name))
    }

    /// Whether all features of `other` are in `self`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A text that does not name a feature to mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` masks no feature; there are {} and -all",
    Features::ALL.names().map(|name| format!("-{name}")).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownFeature {
    /// The text.
    pub name: String,
}

impl Features {
    /// The features that a text such as `-subgroups,-f16` masks: names after a minus, separated by
    /// commas. The plural `s` is optional. The empty text masks none, `-all` masks all.
    ///
    /// # Errors
    /// [`UnknownFeature`] with the first entry that is not a minus and the name of a feature.
    pub fn parse_masked(text: &str) -> Result<Self, UnknownFeature> {
        let mut masked = Self::NONE;
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let unknown = || UnknownFeature {
                name: part.to_owned(),
            };
            let name = part.strip_prefix('-').ok_or_else(unknown)?;
            masked = masked.with(Self::named(name).ok_or_else(unknown)?);
        }
        Ok(masked)
    }

    fn named(name: &str) -> Option<Self> {
        if name == "all" {
            return Some(Self::ALL);
        }
        let features = [Self::SUBGROUPS, Self::F16, Self::MATRICES];
        features.into_iter().find(|feature| {
            let names = |own: &str| own == name || own.strip_suffix('s') == Some(name);
            let matrix = *feature == Self::MATRICES && name == "matrix";
            feature.names().any(names) || matrix
        })
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Parameters in the layout of a kernel's uniform struct: vectors and views at multiples of 16
/// bytes, numbers at multiples of 4.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<u8>);

impl Params {
    pub fn new() -> Self {
        Self::default()
    }

    /// A `vec4<u32>`.
    pub fn vec4(mut self, vector: [u32; 4]) -> Self {
        self.align();
        self.0.extend_from_slice(bytemuck::bytes_of(&vector));
        self
    }

    /// A `vec4<f32>`.
    pub fn floats(self, vector: [f32; 4]) -> Self {
        self.vec4(vector.map(f32::to_bits))
    }

    /// A `View`.
    pub fn view(mut self, view: View) -> Self {
        self.align();
        self.0.extend_from_slice(bytemuck::bytes_of(&view));
        self
    }

    /// A `u32`.
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// An `f32`.
    pub fn f32(self, value: f32) -> Self {
        self.u32(value.to_bits())
    }

    /// The bytes of the struct.
    pub fn finish(mut self) -> Vec<u8> {
        self.align();
        self.0
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(16), 0);
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub kernel: &'static Kernel,
    /// The variant, of the features that the kernel has variants for.
    pub features: Features,
    /// Values of the kernel's pipeline-overridable constants.
    pub constants: Vec<(&'static str, u32)>,
    /// The parameters, laid out as the kernel's uniform struct.
    pub params: Vec<u8>,
    /// The operands of all bindings except scalars, in order.
    pub operands: Vec<Operand>,
    /// The number of workgroups.
    pub workgroups: u32,
}

/// Workgroups as a grid whose dimensions do not exceed `limit`. The grid may have a few more
/// workgroups than asked for; kernels check for that.
pub(crate) fn grid(workgroups: u32, limit: u32) -> [u32; 3] {
    let rows = workgroups.div_ceil(limit.max(1)).max(1);
    [workgroups.div_ceil(rows), rows, 1]
}

/// A kernel file with its texts.
pub(crate) struct Source {
    name: &'static str,
    /// The features that the file has variants for.
    features: u8,
    texts: &'static [(u8, &'static str)],
}

static SOURCES: &[Source] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The WGSL text of a kernel file in the variant of `features`, and the features of that variant;
/// `None` if there is no such file.
pub(crate) fn source(file: &str, features: Features) -> Option<(Features, &'static str)> {
    let source = SOURCES.iter().find(|source| source.name == file)?;
    let wanted = features.0 & source.features;
    let text = source.texts.iter().find(|(bits, _)| *bits == wanted)?;
    Some((Features(wanted), text.1))
}

/// The features of the variant with this text, whichever of its bindings are read-only.
#[cfg(test)]
pub(crate) fn variant_of(text: &str) -> Option<Features> {
    let text = text.replace("var<storage, read>", "var<storage, read_write>");
    let mut all = SOURCES.iter().flat_map(|source| source.texts);
    let found = all.find(|(_, source)| *source == text)?;
    Some(Features(found.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_parsed_from_text() {
        let both = Features::SUBGROUPS.with(Features::F16);
        assert_eq!(Features::parse_masked("-subgroup,-f16"), Ok(both));
        assert_eq!(Features::parse_masked(" -f16 , -subgroups,"), Ok(both));
        assert_eq!(Features::parse_masked("-matrix"), Ok(Features::MATRICES));
        assert_eq!(Features::parse_masked("-all"), Ok(Features::ALL));
        assert_eq!(Features::parse_masked(""), Ok(Features::NONE));
        for wrong in ["f16", "-f8", "-narrow", "-"] {
            let name = wrong.to_owned();
            assert_eq!(Features::parse_masked(wrong), Err(UnknownFeature { name }));
        }
    }

    #[test]
    fn grids_hold_all_workgroups_within_the_limit() {
        for workgroups in [0, 1, 2, 65_535, 65_536, 1_000_000, u32::MAX / 2] {
            let [x, y, z] = grid(workgroups, 65_535);
            assert!(x <= 65_535 && y <= 65_535 && z == 1);
            let all = u64::from(x) * u64::from(y);
            assert!((u64::from(workgroups)..u64::from(workgroups) + u64::from(y)).contains(&all));
        }
    }
}
