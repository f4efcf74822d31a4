//! The usual mixes of number types in model files.

use std::fmt;

use kovar_core::DType::{
    self, BF16, F16, F32, IQ4NL, IQ4XS, MXFP4, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K,
    Q8_0, TQ2_0,
};

/// A choice of number types for the matrices of a model.
///
/// The type of each tensor is the one that llama.cpp's quantizer chooses without an importance
/// matrix (`llama_tensor_get_type`), for models without experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix(usize);

use Layers::{All, First, FirstOf, Grouped, Spread};

struct Row {
    name: &'static str,
    /// The type of most matrices.
    base: DType,
    /// The type of the token embeddings, if the output matrix is another one.
    embeddings: DType,
    /// The type of value projections.
    value: Choice,
    /// The type of down projections.
    down: Choice,
    /// The type of the output projection of attention.
    attention_output: DType,
    /// The type of fused projections of query, key and value.
    fused: DType,
    /// The value of `general.file_type` (`enum llama_ftype`).
    file_type: u32,
}

/// The types of one kind of matrix by layer.
#[derive(Clone, Copy)]
struct Choice {
    layers: Layers,
    /// The type in these layers.
    inside: DType,
    /// The type in the other layers.
    outside: DType,
}

/// Some of the layers.
#[derive(Clone, Copy)]
enum Layers {
    All,
    /// This many layers from the first on.
    First(usize),
    /// The first n-th of the layers.
    FirstOf(usize),
    /// The first and the last eighth, and every third layer between them.
    Spread,
    /// All layers if at least four query heads share a key head, otherwise none.
    Grouped,
}

/// The properties of a layer that a [`Choice`] depends on.
#[derive(Clone, Copy)]
pub(super) struct Layer {
    /// The index of the layer.
    pub index: usize,
    /// The number of layers.
    pub count: usize,
    /// Query heads per key head.
    pub group: usize,
}

impl Choice {
    fn at(self, layer: Layer) -> DType {
        let Layer {
            index,
            count,
            group,
        } = layer;
        let inside = match self.layers {
            All => true,
            First(n) => index < n,
            FirstOf(n) => index < count / n,
            Spread => is_spread(index, count),
            Grouped => group >= 4,
        };
        if inside { self.inside } else { self.outside }
    }
}

const fn choice(layers: Layers, inside: DType, outside: DType) -> Choice {
    Choice {
        layers,
        inside,
        outside,
    }
}

const fn plain(name: &'static str, base: DType, file_type: u32) -> Row {
    let all = choice(All, base, base);
    Row {
        name,
        base,
        embeddings: base,
        value: all,
        down: all,
        attention_output: base,
        fused: base,
        file_type,
    }
}

const TABLE: &[Row] = &[
    plain("F32", F32, 0),
    plain("F16", F16, 1),
    plain("BF16", BF16, 32),
    plain("Q4_0", Q4_0, 2),
    plain("Q4_1", Q4_1, 3),
    plain("Q5_0", Q5_0, 8),
    plain("Q5_1", Q5_1, 9),
    plain("Q8_0", Q8_0, 7),
    Row {
        value: choice(Grouped, Q4K, Q3K),
        down: choice(All, Q3K, Q3K),
        attention_output: Q3K,
        ..plain("Q2_K", Q2K, 10)
    },
    Row {
        value: choice(Grouped, Q4K, Q2K),
        down: choice(FirstOf(8), Q4K, Q2K),
        ..plain("Q2_K_S", Q2K, 21)
    },
    // Of the next three, the format numbers only mixes.
    plain("Q3_K", Q3K, 11),
    plain("Q4_K", Q4K, 14),
    plain("Q5_K", Q5K, 16),
    plain("Q6_K", Q6K, 18),
    plain("Q3_K_S", Q3K, 11),
    Row {
        value: choice(First(2), Q5K, Q4K),
        down: choice(FirstOf(16), Q5K, Q4K),
        attention_output: Q4K,
        fused: Q4K,
        ..plain("Q3_K_M", Q3K, 12)
    },
    Row {
        value: choice(All, Q5K, Q5K),
        down: choice(All, Q5K, Q5K),
        attention_output: Q5K,
        fused: Q4K,
        ..plain("Q3_K_L", Q3K, 13)
    },
    Row {
        value: choice(First(4), Q5K, Q4K),
        down: choice(FirstOf(8), Q5K, Q4K),
        ..plain("Q4_K_S", Q4K, 14)
    },
    Row {
        value: choice(Spread, Q6K, Q4K),
        down: choice(Spread, Q6K, Q4K),
        fused: Q5K,
        ..plain("Q4_K_M", Q4K, 15)
    },
    plain("Q5_K_S", Q5K, 16),
    Row {
        value: choice(Spread, Q6K, Q5K),
        down: choice(Spread, Q6K, Q5K),
        fused: Q6K,
        ..plain("Q5_K_M", Q5K, 17)
    },
    Row {
        value: choice(Grouped, Q5K, IQ4NL),
        down: choice(FirstOf(8), Q5K, IQ4NL),
        ..plain("IQ4_NL", IQ4NL, 25)
    },
    Row {
        value: choice(Grouped, Q5K, IQ4XS),
        down: choice(FirstOf(8), Q5K, IQ4XS),
        ..plain("IQ4_XS", IQ4XS, 30)
    },
    // The format numbers only the mix in which the experts are MXFP4 and the rest is Q8_0.
    plain("MXFP4", MXFP4, 38),
    Row {
        embeddings: Q4K,
        ..plain("TQ2_0", TQ2_0, 37)
    },
];

impl Mix {
    /// The mix called `name`, ignoring case; `None` if there is none.
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

    /// The type of the output matrix, which computes the logits.
    pub(super) fn output(self) -> DType {
        match self.base() {
            plain if !plain.is_quantized() => plain,
            Q8_0 | MXFP4 => Q8_0,
            _ => Q6K,
        }
    }

    /// The type of the token embeddings, if the output matrix is another one.
    pub(super) fn embeddings(self) -> DType {
        self.row().embeddings
    }

    /// The type of a value projection.
    pub(super) fn value(self, layer: Layer) -> DType {
        self.row().value.at(layer)
    }

    /// The type of a down projection.
    pub(super) fn down(self, layer: Layer) -> DType {
        self.row().down.at(layer)
    }

    /// The type of the output projection of attention.
    pub(super) fn attention_output(self) -> DType {
        self.row().attention_output
    }

    /// The type of a fused projection of query, key and value.
    pub(super) fn fused(self) -> DType {
        self.row().fused
    }

    fn row(self) -> &'static Row {
        &TABLE[self.0]
    }
}

fn is_spread(index: usize, count: usize) -> bool {
    let eighth = count / 8;
    index < eighth || index >= 7 * count / 8 || (index - eighth) % 3 == 2
}

/// `wanted`, or the type in its place if rows of `row` elements are not whole blocks of it.
pub(crate) fn fall_back(wanted: DType, row: usize) -> DType {
    if row.is_multiple_of(wanted.block_len()) {
        return wanted;
    }
    let smaller = match wanted {
        Q2K | Q3K | IQ4XS => IQ4NL,
        Q4K => Q5_0,
        Q5K => Q5_1,
        Q6K => Q8_0,
        TQ2_0 => Q4_0,
        _ => F16,
    };
    if row.is_multiple_of(smaller.block_len()) {
        smaller
    } else {
        F16
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

    fn layers(count: usize, important: impl Fn(Layer) -> bool) -> Vec<usize> {
        let group = 1;
        let at = |index| {
            important(Layer {
                index,
                count,
                group,
            })
        };
        (0..count).filter(|&index| at(index)).collect()
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
        let mix = |name| Mix::from_name(name).unwrap();
        let medium = mix("Q4_K_M");
        let found = layers(16, |at| medium.down(at) == Q6K);
        assert_eq!(found, [0, 1, 4, 7, 10, 13, 14, 15]);
        assert_eq!(found, layers(16, |at| medium.value(at) == Q6K));
        let small = mix("Q4_K_S");
        assert_eq!(layers(32, |at| small.value(at) == Q5K), [0, 1, 2, 3]);
        assert_eq!(layers(16, |at| small.down(at) == Q5K), [0, 1]);
        let medium = mix("Q3_K_M");
        assert_eq!(layers(32, |at| medium.value(at) == Q5K), [0, 1]);
        assert_eq!(layers(48, |at| medium.down(at) == Q5K), [0, 1, 2]);
        assert_eq!(layers(16, |at| mix("IQ4_XS").down(at) == Q5K), [0, 1]);
    }

    #[test]
    fn value_projections_shared_by_many_heads_get_more_bits() {
        for (name, few, many) in [
            ("Q2_K", Q3K, Q4K),
            ("Q2_K_S", Q2K, Q4K),
            ("IQ4_NL", IQ4NL, Q5K),
            ("IQ4_XS", IQ4XS, Q5K),
            ("Q3_K_S", Q3K, Q3K),
        ] {
            let mix = Mix::from_name(name).unwrap();
            let value = |group| {
                let (index, count) = (3, 8);
                mix.value(Layer {
                    index,
                    count,
                    group,
                })
            };
            assert_eq!([value(3), value(4)], [few, many], "{name}");
        }
    }

    #[test]
    fn rows_that_are_not_whole_blocks_fall_back_to_more_bits() {
        for (wanted, row, found) in [
            (Q4K, 512, Q4K),
            (Q2K, 576, IQ4NL),
            (Q3K, 576, IQ4NL),
            (Q4K, 576, Q5_0),
            (Q5K, 576, Q5_1),
            (Q6K, 576, Q8_0),
            (IQ4XS, 576, IQ4NL),
            (TQ2_0, 576, Q4_0),
            (Q6K, 48, F16),
            (Q4_0, 48, F16),
            (MXFP4, 48, F16),
            (F32, 7, F32),
        ] {
            assert_eq!(fall_back(wanted, row), found, "{wanted} {row}");
        }
    }
}
