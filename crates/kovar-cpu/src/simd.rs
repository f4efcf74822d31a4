//! The vector instructions that kernels use.

use std::fmt;
use std::str::FromStr;

/// A set of vector instructions that kernels are written for.
///
/// A level is a value that is passed to a backend, so tests can run every level of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SimdLevel {
    /// Plain code for any machine.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI.
    Avx512Vnni,
    /// AArch64 with the dot-product instructions.
    Neon,
}

/// A name that is not a [`SimdLevel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown SIMD level `{name}`; known: portable, avx2, avx512-vnni, neon")]
pub struct UnknownSimdLevel {
    /// The name as given.
    pub name: String,
}

impl SimdLevel {
    /// Every level, the simplest first.
    pub const ALL: [SimdLevel; 4] = [
        SimdLevel::Portable,
        SimdLevel::Avx2,
        SimdLevel::Avx512Vnni,
        SimdLevel::Neon,
    ];

    /// The best level of this machine.
    pub fn detect() -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|level| level.is_available())
            .unwrap_or(SimdLevel::Portable)
    }

    /// The levels that this machine can run, the simplest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|l| l.is_available()).collect()
    }

    /// Whether this machine can run the level.
    pub fn is_available(self) -> bool {
        match self {
            SimdLevel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => has_avx2(),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512Vnni => {
                has_avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            SimdLevel::Portable => "portable",
            SimdLevel::Avx2 => "avx2",
            SimdLevel::Avx512Vnni => "avx512-vnni",
            SimdLevel::Neon => "neon",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

impl fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SimdLevel {
    type Err = UnknownSimdLevel;

    fn from_str(name: &str) -> Result<Self, UnknownSimdLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownSimdLevel { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_level_is_the_last_available_one() {
        let available = SimdLevel::available();
        assert_eq!(available.first(), Some(&SimdLevel::Portable));
        assert_eq!(available.last(), Some(&SimdLevel::detect()));
    }

    #[test]
    fn names_are_read_back() {
        for level in SimdLevel::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!("sse9".parse::<SimdLevel>().is_err());
    }
}
