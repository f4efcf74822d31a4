//! The mixes of number types that model files usually have.

use std::fmt;

use kovar_core::DType;

/// A choice of number types for the matrices of a model.
///
/// The types of the single tensors are those that llama.cpp's quantizer takes without an importance
/// matrix (`llama_tensor_get_type`), for models without experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix(usize);

struct Row {
    name: &'static str,
    /// The type of most matrices.
    base: DType,
    /// The type of value and down projections in the layers that count most.
    important: DType,
    layers: Layers,
    /// The value of `general.file_type` (`enum llama_ftype`).
    file_type: u32,
}

/// The layers whose value and down projections get the important type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layers {
    None,
    /// The first eighth; of value projections the first four.
    First,
    /// The first and the last eighth and every third between.
    Spread,
}

const fn plain(name: &'static str, base: DType, file_type: u32) -> Row {
    Row {
        name,
        base,
        important: base,
        layers: Layers::None,
        file_type,
    }
}

const fn mixed(
    name: &'static str,
    base: DType,
    important: DType,
    layers: Layers,
    file_type: u32,
) -> Row {
    Row {
        name,
        base,
        important,
        layers,
        file_type,
    }
}

const TABLE: &[Row] = &[
    plain("F32", DType::F32, 0),
    plain("F16", DType::F16, 1),
    plain("BF16", DType::BF16, 32),
    plain("Q4_0", DType::Q4_0, 2),
    plain("Q4_1", DType::Q4_1, 3),
    plain("Q5_0", DType::Q5_0, 8),
    plain("Q5_1", DType::Q5_1, 9),
    plain("Q8_0", DType::Q8_0, 7),
    // The format numbers only mixes of these two.
    plain("Q4_K", DType::Q4K, 14),
    plain("Q5_K", DType::Q5K, 16),
    plain("Q6_K", DType::Q6K, 18),
    mixed("Q4_K_S", DType::Q4K, DType::Q5K, Layers::First, 14),
    mixed("Q4_K_M", DType::Q4K, DType::Q6K, Layers::Spread, 15),
    plain("Q5_K_S", DType::Q5K, 16),
    mixed("Q5_K_M", DType::Q5K, DType::Q6K, Layers::Spread, 17),
];

impl Mix {
    /// The mix called `name`, in either case; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |row: &Row| row.name.eq_ignore_ascii_case(name);
        TABLE.iter().position(is).map(Self)
    }

    /// Every mix.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// Its name: `Q4_K_M`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type of most matrices.
    pub fn base(self) -> DType {
        self.row().base
    }

    /// The value of `general.file_type`.
    pub fn file_type(self) -> u32 {
        self.row().file_type
    }

    /// The type of the matrix that gives the logits.
    pub(super) fn output(self) -> DType {
        match self.base() {
            plain if !plain.is_quantized() => plain,
            DType::Q8_0 => DType::Q8_0,
            _ => DType::Q6K,
        }
    }

    /// The type of the value projection of layer `index` of `count`.
    pub(super) fn value(self, index: usize, count: usize) -> DType {
        let row = self.row();
        match row.layers {
            Layers::First if index < 4 => row.important,
            Layers::Spread if is_spread(index, count) => row.important,
            _ => row.base,
        }
    }

    /// The type of a projection of query, key and value in one.
    pub(super) fn fused(self) -> DType {
        let row = self.row();
        match (row.layers, row.base) {
            (Layers::Spread, DType::Q4K) => DType::Q5K,
            (Layers::Spread, DType::Q5K) => DType::Q6K,
            (_, base) => base,
        }
    }

    /// The type of the down projection of layer `index` of `count`.
    pub(super) fn down(self, index: usize, count: usize) -> DType {
        let row = self.row();
        match row.layers {
            Layers::First if index < count / 8 => row.important,
            Layers::Spread if is_spread(index, count) => row.important,
            _ => row.base,
        }
    }

    fn row(self) -> &'static Row {
        &TABLE[self.0]
    }
}

fn is_spread(index: usize, count: usize) -> bool {
    let eighth = count / 8;
    index < eighth || index >= 7 * count / 8 || (index - eighth) % 3 == 2
}

/// What a tensor gets whose rows of `row` elements are not whole blocks of `wanted`.
pub(crate) fn fall_back(wanted: DType, row: usize) -> DType {
    if row.is_multiple_of(wanted.block_len()) {
        return wanted;
    }
    let smaller = match wanted {
        DType::Q4K => DType::Q5_0,
        DType::Q5K => DType::Q5_1,
        DType::Q6K => DType::Q8_0,
        _ => DType::F16,
    };
    if row.is_multiple_of(smaller.block_len()) {
        smaller
    } else {
        DType::F16
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(count: usize, important: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..count).filter(|&index| important(index)).collect()
    }

    #[test]
    fn every_mix_is_found_by_its_name() {
        for mix in Mix::all() {
            assert_eq!(Mix::from_name(mix.name()), Some(mix));
            assert_eq!(Mix::from_name(&mix.name().to_lowercase()), Some(mix));
        }
        assert_eq!(Mix::from_name("Q4_K_L"), None);
    }

    #[test]
    fn the_important_layers_are_those_of_llama_cpp() {
        let mix = Mix::from_name("Q4_K_M").unwrap();
        let found = layers(16, |i| mix.down(i, 16) == DType::Q6K);
        assert_eq!(found, [0, 1, 4, 7, 10, 13, 14, 15]);
        assert_eq!(found, layers(16, |i| mix.value(i, 16) == DType::Q6K));
        let small = Mix::from_name("Q4_K_S").unwrap();
        assert_eq!(
            layers(32, |i| small.value(i, 32) == DType::Q5K),
            [0, 1, 2, 3]
        );
        assert_eq!(layers(16, |i| small.down(i, 16) == DType::Q5K), [0, 1]);
    }

    #[test]
    fn rows_that_are_not_whole_blocks_fall_back_to_more_bits() {
        for (wanted, row, found) in [
            (DType::Q4K, 512, DType::Q4K),
            (DType::Q4K, 576, DType::Q5_0),
            (DType::Q5K, 576, DType::Q5_1),
            (DType::Q6K, 576, DType::Q8_0),
            (DType::Q6K, 48, DType::F16),
            (DType::Q4_0, 48, DType::F16),
            (DType::F32, 7, DType::F32),
        ] {
            assert_eq!(fall_back(wanted, row), found, "{wanted} {row}");
        }
    }
}
