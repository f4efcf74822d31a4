//! The kernel table of each level.

use super::activation::QuantizeCall;
use super::panel::{DecodeCall, N_KINDS, PanelCall};
use crate::pack::N_FORMATS;
use crate::simd::SimdLevel;

/// # Safety
/// As [`super::activation::quantize`], on a machine that has the level.
pub(crate) type QuantizeFn = unsafe fn(&QuantizeCall);

/// # Safety
/// As [`super::panel::Decode::decode`].
pub(crate) type DecodeFn = unsafe fn(&DecodeCall);

/// # Safety
/// `panel` holds `blocks` blocks of `groups` (1 or 2) groups of the kernel's kind, aligned to 64
/// bytes; `x` is a tile of `tokens` (at most the level's `tile`) tokens of `blocks` blocks; `y` is
/// writable for the first `rows` (at most `16 * groups`) elements of each token.
pub(crate) type PanelFn = unsafe fn(&PanelCall);

/// The arguments of a level's fused kernel: one group in its prepared form and a tile of at most
/// `fused_tokens` tokens.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only AVX-512 has fused kernels")
)]
pub(crate) struct FusedCall {
    pub scales: *const u8,
    pub codes: *const u8,
    pub blocks: usize,
    pub x: *const u8,
    pub tokens: usize,
    pub y: *mut f32,
    pub y_stride: usize,
    pub rows: usize,
}

/// # Safety
/// `scales` and `codes` are a group of the kernel's format with `blocks` blocks, aligned to 64
/// bytes (codes) and 32 bytes (scales); `x` and `y` as for [`PanelFn`].
pub(crate) type FusedFn = unsafe fn(&FusedCall);

/// The arguments of a level's kernel for float weights: `rows` rows of `k` elements, `w_stride`
/// bytes apart, and `tokens` rows of `x`. If `add`, products are added to `y`.
#[derive(Clone, Copy)]
pub(crate) struct FloatCall {
    pub w: *const u8,
    pub w_stride: usize,
    pub rows: usize,
    pub k: usize,
    pub x: *const f32,
    pub x_stride: usize,
    pub tokens: usize,
    pub y: *mut f32,
    pub y_stride: usize,
    pub add: bool,
}

/// # Safety
/// Rows of `w` and `x` are readable, `y[t * y_stride + row]` writable (with `add` readable too)
/// for each row and token.
pub(crate) type FloatFn = unsafe fn(&FloatCall);

/// The product kernels of one [`SimdLevel`].
pub struct Kernels {
    pub(crate) level: SimdLevel,
    /// The most tokens of a tile.
    pub(crate) tile: usize,
    /// Up to this many tokens the fused kernels are faster than a panel.
    pub(crate) fused_tokens: usize,
    pub(crate) quantize: QuantizeFn,
    /// By [`crate::pack::format_index`].
    pub(crate) decode: [DecodeFn; N_FORMATS],
    /// By [`super::panel::PanelKind`].
    pub(crate) panel: [PanelFn; N_KINDS],
    /// By [`crate::pack::format_index`].
    pub(crate) fused: Option<[FusedFn; N_FORMATS]>,
    /// By [`super::FloatDType`].
    pub(crate) float: [FloatFn; 5],
    /// Rows that a float kernel takes at a time.
    pub(crate) float_rows: usize,
}

impl Kernels {
    /// The kernels of a level; `None` if this machine cannot run it.
    pub fn for_level(level: SimdLevel) -> Option<&'static Kernels> {
        if !level.is_available() {
            return None;
        }
        match level {
            SimdLevel::Portable => Some(&super::portable::KERNELS),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => Some(&super::avx2::KERNELS),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512Vnni => Some(&super::avx512::KERNELS),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => Some(&super::neon::KERNELS),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }

    /// The kernels of the machine's best level.
    pub fn detect() -> &'static Kernels {
        Self::for_level(SimdLevel::detect()).unwrap_or(&super::portable::KERNELS)
    }

    /// The level.
    pub fn level(&self) -> SimdLevel {
        self.level
    }
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernels")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}
